// The probes do the work that they are timed for.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/machine/limits.h"

namespace mote {
namespace {

// body(name, functions) for each variant of a role that this CPU can run.
template <typename Functions, typename Body>
void for_each_variant(const Body& body) {
  int count = 0;
  for (const Kernel* kernel : all_kernels()) {
    if (kernel->role != Functions::kRole || !detect_cpu_features().has_all(kernel->needs)) continue;
    SCOPED_TRACE(std::string(kernel->name));
    body(*static_cast<const Functions*>(kernel->functions));
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(Limits, the_read_probe_reads_every_byte) {
  std::vector<std::byte> bytes(3 * 4096);
  std::mt19937 random(1);
  for_each_variant<ReadProbe>([&](const ReadProbe& probe) {
    for (const auto read : {probe.read_one, probe.read_four}) {
      EXPECT_EQ(read(bytes.data(), bytes.size()), 0u);
      for (int i = 0; i < 200; ++i) {
        const size_t at = random() % bytes.size();
        bytes[at] = std::byte{0x41};
        EXPECT_EQ(read(bytes.data(), bytes.size()), uint64_t{0x41} << (8 * (at % 8))) << at;
        bytes[at] = std::byte{0};
      }
    }
  });
}

TEST(Limits, the_int8_probe_multiplies_as_often_as_it_says) {
  for_each_variant<Int8Probe>([](const Int8Probe& probe) {
    for (const Int8Probe::Loop& loop : {probe.narrow, probe.wide}) {
      for (const int64_t turns : {0, 1, 7, 1000}) {
        for (const int32_t seed : {0x00000000, 0x00030201, 0x7F80FF10, -1}) {
          int8_t codes[4];
          std::memcpy(codes, &seed, sizeof codes);
          const int64_t product = codes[0] + 2 * codes[1] + 3 * codes[2];
          EXPECT_EQ(loop.multiply(turns, seed), loop.macs_per_turn / 64 * turns * product) << turns << " " << seed;
        }
      }
    }
  });
}

}  // namespace
}  // namespace mote
