#include "kernels/machine/cpu_features.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

#include "base/small_file.h"
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace mote {

namespace {

struct Name {
  CpuFeature feature;
  std::string_view name;
};

constexpr Name kNames[] = {{CpuFeature::kAvx2, "avx2"},
                           {CpuFeature::kAvxVnni, "avxvnni"},
                           {CpuFeature::kAvx512, "avx512"},
                           {CpuFeature::kAvx512Vnni, "avx512vnni"},
                           {CpuFeature::kAmx, "amx"},
                           {CpuFeature::kDotprod, "dotprod"},
                           {CpuFeature::kI8mm, "i8mm"},
                           {CpuFeature::kSme, "sme"},
                           {CpuFeature::kOneStream, "onestream"},
                           {CpuFeature::kFetchedStream, "fetchedstream"}};

[[maybe_unused]] void add_if(CpuFeatures& features, bool present, CpuFeature feature) {
  if (present) features = features | feature;
}

#if defined(__x86_64__)

constexpr uint64_t bit(int index) { return uint64_t{1} << index; }

// The register states that the system saves, as bits: 1 SSE, 2 AVX, 5-7 AVX-512, 17-18 AMX.
uint64_t saved_states() {
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

// AMD's cores have kOneStream, measured on Zen 4, and since Zen 5 kFetchedStream (docs/performance.md).
constexpr uint32_t kZen5 = 26;
uint32_t cpu_family(uint32_t signature) { return (signature >> 8 & 15) + (signature >> 20 & 255); }
bool is_amd() {
  uint32_t a = 0, name[3] = {};
  return __get_cpuid(0, &a, &name[0], &name[2], &name[1]) != 0 && std::memcmp(name, "AuthenticAMD", sizeof(name)) == 0;
}

// Asks for the tile registers, which Linux gives only to a process that does.
bool may_use_amx() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

#elif defined(__aarch64__)

// Whether vectors have 512 bits in SME's mode, as on all CPUs that have it. For CPUs with SME only.
bool has_wide_sme() {
  uint64_t bytes = 0;
  asm volatile(".arch_extension sme\n rdsvl %0, #1" : "=r"(bytes));
  return bytes == 64;
}

#endif

}  // namespace

#if defined(__x86_64__)

CpuFeatures detect_cpu_features() {
  CpuFeatures features;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return features;
  const uint32_t family = cpu_family(a);
  constexpr uint32_t kOsXsave = 1u << 27, kFma = 1u << 12, kF16c = 1u << 29;
  if ((c & (kOsXsave | kFma | kF16c)) != (kOsXsave | kFma | kF16c)) return features;
  const uint64_t saved = saved_states();
  const bool avx = (saved & (bit(1) | bit(2))) == (bit(1) | bit(2));
  if (!avx || __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return features;
  const bool avx2 = (b & bit(5)) != 0;
  add_if(features, avx2, CpuFeature::kAvx2);
  add_if(features, avx2 && is_amd(), CpuFeature::kOneStream);
  add_if(features, avx2 && is_amd() && family >= kZen5, CpuFeature::kFetchedStream);
  constexpr uint64_t kAvx512States = bit(5) | bit(6) | bit(7);
  constexpr uint64_t kFoundation = bit(16) | bit(17) | bit(30) | bit(31);  // f, dq, bw, vl
  const bool avx512 = avx2 && (saved & kAvx512States) == kAvx512States && (b & kFoundation) == kFoundation;
  const bool vnni = avx512 && (c & bit(11)) != 0;
  add_if(features, avx512, CpuFeature::kAvx512);
  add_if(features, vnni, CpuFeature::kAvx512Vnni);
  constexpr uint64_t kTile = bit(24) | bit(25), kTileStates = bit(17) | bit(18);  // amx-tile, amx-int8
  add_if(features, vnni && (d & kTile) == kTile && (saved & kTileStates) == kTileStates && may_use_amx(),
         CpuFeature::kAmx);
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) add_if(features, avx2 && (a & bit(4)) != 0, CpuFeature::kAvxVnni);
  return features;
}

std::string cpu_name() {
  uint32_t words[12] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    uint32_t* part = words + 4 * i;
    if (__get_cpuid(0x80000002 + i, &part[0], &part[1], &part[2], &part[3]) == 0) return {};
  }
  char name[sizeof(words) + 1] = {};
  std::memcpy(name, words, sizeof(words));
  uint32_t signature = 0, b = 0, c = 0, d = 0;  // family, model and stepping, since virtual machines have vague names
  __get_cpuid(1, &signature, &b, &c, &d);
  return std::string(name) + " " + std::to_string(signature);
}

#elif defined(__aarch64__) && defined(__linux__)

CpuFeatures detect_cpu_features() {
  constexpr unsigned long kAsimdDp = 1ul << 20;                 // HWCAP_ASIMDDP
  constexpr unsigned long kI8mm = 1ul << 13, kSme = 1ul << 23;  // HWCAP2_I8MM, HWCAP2_SME
  CpuFeatures features;
  add_if(features, (getauxval(AT_HWCAP) & kAsimdDp) != 0, CpuFeature::kDotprod);
  add_if(features, (getauxval(AT_HWCAP2) & kI8mm) != 0, CpuFeature::kI8mm);
  add_if(features, (getauxval(AT_HWCAP2) & kSme) != 0 && has_wide_sme(), CpuFeature::kSme);
  return features;
}

std::string cpu_name() {
  const std::string identity = first_word_of_file("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1");
  return identity.empty() ? identity : "MIDR_EL1 " + identity;
}

#elif defined(__aarch64__) && defined(__APPLE__)

CpuFeatures detect_cpu_features() {
  const auto has = [](const char* name) {
    int value = 0;
    size_t size = sizeof(value);
    return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value != 0;
  };
  CpuFeatures features;
  add_if(features, has("hw.optional.arm.FEAT_DotProd"), CpuFeature::kDotprod);
  add_if(features, has("hw.optional.arm.FEAT_I8MM"), CpuFeature::kI8mm);
  add_if(features, has("hw.optional.arm.FEAT_SME") && has_wide_sme(), CpuFeature::kSme);
  return features;
}

std::string cpu_name() {
  char name[128] = {};
  size_t size = sizeof(name) - 1;
  return sysctlbyname("machdep.cpu.brand_string", name, &size, nullptr, 0) == 0 ? name : "";
}

#else

CpuFeatures detect_cpu_features() { return CpuFeatures(); }
std::string cpu_name() { return {}; }

#endif

std::string to_string(CpuFeatures features) {
  std::string text;
  for (const Name& entry : kNames) {
    if (!features.has_all(entry.feature)) continue;
    if (!text.empty()) text += '+';
    text += entry.name;
  }
  return text.empty() ? "none" : text;
}

Result<CpuFeatures> parse_cpu_features(std::string_view text) {
  CpuFeatures features;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find_first_of(",+"));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    if (name == "none") continue;
    bool known = false;
    std::string accepted = "none";
    for (const Name& entry : kNames) {
      accepted += ", " + std::string(entry.name);
      if (name != entry.name) continue;
      features = features | entry.feature;
      known = true;
    }
    MOTE_REQUIRE(known, Code::kInvalidArgument,
                 "MOTE_CPU_FEATURES holds '%.*s': must be a list of %s separated by commas",
                 static_cast<int>(name.size()), name.data(), accepted.c_str());
  }
  return features;
}

const Result<CpuFeatures>& cpu_features() {
  static const Result<CpuFeatures> features = []() -> Result<CpuFeatures> {
    const char* mask = std::getenv("MOTE_CPU_FEATURES");
    if (mask == nullptr) return detect_cpu_features();
    MOTE_ASSIGN(const CpuFeatures allowed, parse_cpu_features(mask));
    return detect_cpu_features() & allowed;
  }();
  return features;
}

bool has_vector_kernels() {
#if defined(__x86_64__)
  return cpu_features().ok() && cpu_features()->has_all(CpuFeature::kAvx2);
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

}  // namespace mote
