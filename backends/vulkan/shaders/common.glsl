// What all shaders share: parameters as words that the host pushes, rows of tiles, sums over a workgroup of 64.
// In a chain these words are a step's.
#ifdef CHAIN
shared uint push[32];
layout(push_constant) uniform Push { uint pushed[32]; };
#else
layout(push_constant) uniform Push { uint push[32]; };
#endif

float float_at(uint word) { return uintBitsToFloat(push[word]); }

// A workgroup's number where one dimension of a dispatch does not count far enough.
uint group_index() { return gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x; }

#define kInfinity uintBitsToFloat(0x7f800000u)

bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }

// As the CPU's sum_lanes.
#define SUM_16_LANES(l)                                                                             \
  ((((l[0] + l[8]) + (l[4] + l[12])) + ((l[2] + l[10]) + (l[6] + l[14]))) +                         \
   (((l[1] + l[9]) + (l[5] + l[13])) + ((l[3] + l[11]) + (l[7] + l[15]))))

// The sum of 64: of four for each of 16 lanes, then of these. `total` must be precise.
#define SUM_64_LANES(total, l)                                                   \
  {                                                                              \
    float sixteen[16];                                                           \
    for (uint i = 0; i < 16; ++i) {                                              \
      precise float even = l[i] + l[32 + i], odd = l[16 + i] + l[48 + i];        \
      precise float both = even + odd;                                           \
      sixteen[i] = both;                                                         \
    }                                                                            \
    total = SUM_16_LANES(sixteen);                                               \
  }
