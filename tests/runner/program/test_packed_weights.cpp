// With kernels that cannot read tiles (tests/kernels/packed_kernel.cpp, which MOTE_KERNEL chooses here).
#include <gtest/gtest.h>

#include <set>

#include "kernels/formats.h"
#include "kernels/kernel.h"
#include "runner/program/executor.h"
#include "runner/program/thread_pool.h"
#include "tests/runner/program/tiny_model.h"

namespace mote::test {
namespace {

// What each quantised weight of the file takes once: 16-bit products of 16 rows, and their scales.
uint64_t packed_once(const fb::Program& program) {
  int64_t bytes = 0;
  for (const fb::Weight* weight : *program.weights()) {
    if (weight->bits() == 0) continue;
    const int64_t rows = weight->shape()->Get(0), columns = weight->shape()->Get(1);
    bytes += (rows + kTileRows - 1) / kTileRows * kTileRows * (2 * columns + 4);
  }
  return static_cast<uint64_t>(bytes);
}

TEST(PackedWeights, are_one_copy_for_all_methods_and_sessions_of_a_program) {
  Result<Mapped> mapped = map_bytes("test.mote", tiny_model().build());
  ASSERT_TRUE(mapped.ok());
  Result<Verified> verified = verify(*std::move(mapped));
  ASSERT_TRUE(verified.ok()) << verified.status().message();
  const auto bound = bind(*std::move(verified));
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  const uint64_t expected = packed_once((*bound)->program());
  EXPECT_EQ(expected, (*bound)->packed_weights().bytes()) << "bind packs them, so that no session has to";

  const auto threads = *make_thread_pool(2);
  for (int session = 0; session < 2; ++session) {
    const auto executor = Executor::create(*bound, {.max_tokens = 40}, threads.get());
    ASSERT_TRUE(executor.ok()) << executor.status().message();
    EXPECT_EQ(expected, (*bound)->packed_weights().bytes());
  }
  std::set<std::string_view> chosen;
  for (const KernelChoice& choice : kernel_choices()) chosen.insert(choice.kernel->name);
  EXPECT_TRUE(chosen.contains("codes_test_packed_4") && chosen.contains("codes_test_packed_8"));
}

}  // namespace
}  // namespace mote::test
