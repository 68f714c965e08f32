// mote.linear and mote.gated_linear with inputs that are rounded in groups, over tiles of any scales (docs/ops.md, "Groups"): sums of 32
// columns, of 16 where groups have 16, are exact integers, which floats scale and add in ascending order. Invocations as in product.glsl. Where ROUNDS is
// defined, the last workgroup rounds the one row that there is for the next product. Includers define DOT, ROUNDS.
#include "products.glsl"

layout(binding = 0) readonly buffer Codes { QUAD codes[]; };
layout(binding = 1) readonly buffer Scales { float scales[]; };
layout(binding = 2) readonly buffer Sums { ivec2 sums[]; };

ivec4 firsts[TOKENS], seconds[TOKENS];  // sums of code * q of 16 columns each
ivec4 first_digits, second_digits;      // sums of the stored numbers

vec4 halves_of(uint at, uint quad) {
  uvec4 words = weight[at / 4 + quad / 2];
  uvec2 own = quad % 2 == 0 ? words.xy : words.zw;
  return vec4(unpackHalf2x16(own.x), unpackHalf2x16(own.y));
}

// 4 numbers of a plane, a byte each in `digits`, of columns 4 * quad .. of the 32.
void add_quad(uvec4 digits, uint shift, uint quad, uint first_quad) {
  ivec4 sum = ivec4(sums_of_bytes(digits) << shift);
  if (quad < 4) {
    first_digits += sum;
  } else {
    second_digits += sum;
  }
  EACH_TOKEN {
    QUAD q = codes[tokens[t] * (push[0] / 4) + first_quad + quad];
    ivec4 products = ivec4(products_of_bytes(digits, q) << shift);
    if (quad < 4) {
      firsts[t] += products;
    } else {
      seconds[t] += products;
    }
  }
}

// Codes that stand for others: + 128, so that they are not negative either.
uvec4 looked_up(uvec4 digits) {
  uvec4 found = uvec4(0);
  [[unroll]] for (uint byte = 0; byte < 4; ++byte) {
    uvec4 numbers = digits >> (8 * byte) & 0xff;
    [[unroll]] for (uint i = 0; i < 4; ++i) found[i] |= uint(codebook_at(numbers[i]) + 128) << (8 * byte);
  }
  return found;
}

void add_plane(uint plane, uint at, uint chunk, uint quad, uint first_quad, uint shift) {
  uint mask = ((1u << plane) - 1) * 0x01010101u;
  [[unroll]] for (uint word = 0; word < plane; ++word) {
    uvec4 words = weight[at / 4 + 4 * (chunk * plane + word) + quad];
    [[unroll]] for (uint h = 0; h < 8 / plane; ++h) {
      uvec4 digits = words >> (plane * h) & mask;
      add_quad(HAS_CODEBOOK ? looked_up(digits) : digits, shift, word * (8 / plane) + h, first_quad);
    }
  }
}

vec4 sums_of_rows[TOKENS];

void multiply(uint block, uint quad) {
  uint columns = push[0], begin = (first_block() + block) * block_words(columns);
  int offset = HAS_CODEBOOK ? 128 : BITS == 1 ? 1 : code_offset();
  EACH_TOKEN sums_of_rows[t] = vec4(0.0);
  for (uint chunk = 0; chunk < columns / 32; ++chunk) {
    uint column = 32 * chunk, tile = begin + tile_at(column), in_tile = column % kTileColumns / 32;
    first_digits = second_digits = ivec4(0);
    EACH_TOKEN firsts[t] = seconds[t] = ivec4(0);
    add_plane(kPlane0, tile, in_tile, quad, 8 * chunk, 0);
    if (kPlane1 != 0) add_plane(max(kPlane1, 1), tile + 16 * kTileColumns * kPlane0 / 32, in_tile, quad, 8 * chunk, kPlane0);
    if (kPlane2 != 0) {
      add_plane(max(kPlane2, 1), tile + 16 * kTileColumns * (kPlane0 + kPlane1) / 32, in_tile, quad, 8 * chunk,
                kPlane0 + kPlane1);
    }
    vec4 scale = vec4(1.0), minimum = vec4(0.0);
    if (SCALE_COLUMNS != 0) {
      uint at = begin + column / kSpanColumns * kSpanWords + 8 * (column % kSpanColumns / max(SCALE_COLUMNS, 1));
      scale = halves_of(at, quad);
      minimum = LOW == 1 ? halves_of(at + kScaleWords, quad) : scale;
    }
    const uint parts = GROUP < 32 ? 2 : 1;
    [[unroll]] for (uint part = 0; part < parts; ++part) {
      uint group = GROUP < 32 ? part : 0;
      precise vec4 w = scale, low = minimum;
      // With scales of 16 columns each part has one of its own.
      if (SCALE_COLUMNS == 16 && part == 1) {
        uint at = begin + column / kSpanColumns * kSpanWords + 8 * (column % kSpanColumns / 16 + 1);
        w = halves_of(at, quad);
        low = LOW == 1 ? halves_of(at + kScaleWords, quad) : w;
      }
      if (kMultipliers != 0) w *= vec4(bytes_of((tile + kCodeWords) / 4 + group, quad));
      if (kLows != 0) low *= vec4(bytes_of((tile + kLowsAt) / 4 + group, quad));
      EACH_TOKEN {
        ivec2 of_codes = sums[tokens[t] * (columns / 32) + chunk];
        ivec4 digits = GROUP < 32 ? (part == 0 ? first_digits : second_digits) : first_digits + second_digits;
        ivec4 dots = GROUP < 32 ? (part == 0 ? firsts[t] : seconds[t]) : firsts[t] + seconds[t];
        int sum = GROUP < 32 ? of_codes[part] : of_codes.x + of_codes.y;
        ivec4 exact = dots - 128 * digits;
        exact = BITS == 1 ? 2 * exact - sum : exact - offset * sum;
        float x_scale = scales[tokens[t] * (columns / 32) + chunk];
        precise vec4 inner = fma(w, x_scale * vec4(exact), sums_of_rows[t]);
        if (LOW != 0) inner = fma(low, vec4(x_scale * float(sum)), inner);
        sums_of_rows[t] = inner;
      }
    }
  }
}

vec4 finished(uint block, uint quad, uint t) {
  uint at = (first_block() + block) * block_words(push[0]) + row_scales_at(push[0]);
  precise vec4 value = sums_of_rows[t];
  if (HAS_ROW_SCALES) value = uintBitsToFloat(weight[at / 4 + quad]) * value;
  return with_bias(value, first_row(block, quad));
}

// push: products.glsl
void main() {
  uint place = gl_LocalInvocationID.x, quad = place % 4, first_token = gl_WorkGroupID.y * TOKENS;
  uint own = gl_WorkGroupID.x * BLOCKS + place / 4, block = min(own, last_block());
  if (!choose(first_token)) return;
  EACH_TOKEN tokens[t] = input_of(output_or_other(first_token + t, first_token));
  multiply(block, quad);
  vec4 gates[TOKENS];
  if (GATE != 0) {
    find_gates(block, quad, gates);
    multiply(block + push[7], quad);
  }
  if (own == block) write(block, quad, first_token, gates);
#ifdef ROUNDS
  round_by_last();
#endif
}
