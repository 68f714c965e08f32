#include "runner/advice/prediction.h"

#include <gtest/gtest.h>

#include "runner/session/session.h"
#include "tests/runner/session/tiny_file.h"

namespace mote::test {
namespace {

using std::chrono::microseconds;

// What a call took, an instruction `us(index)` microseconds, of the first `count` instructions that run.
template <typename Us>
double add_call(Profile& profile, const Bound& bound, uint32_t method, int64_t tokens, size_t count, const Us& us) {
  profile.begin_call(method, tokens);
  Profile::Clock::time_point now{};
  double seconds = 0;
  const std::span<const Op* const> ops = bound.ops(method);
  for (uint32_t i = 0; i < ops.size() && count > 0; ++i) {
    if (ops[i]->is_view) continue;
    const microseconds time(us(i));
    profile.add(i, now, now + time, {});
    now += time;
    seconds += std::chrono::duration<double>(time).count();
    --count;
  }
  return seconds;
}

size_t num_run(const Bound& bound, uint32_t method) {
  return static_cast<size_t>(std::ranges::count_if(bound.ops(method), [](const Op* op) { return !op->is_view; }));
}

class PredictionTest : public testing::Test {
 protected:
  TinyFile file_{tiny_program()};
  std::shared_ptr<const Model> model_ = *Model::open(file_.path());
  const Bound& bound_ = *model_->bound();
  uint32_t decode_ = *bound_.method_index("decode"), prefill_ = *bound_.method_index("prefill");
  Prediction prediction_{bound_};
};

TEST_F(PredictionTest, a_whole_call_is_what_it_took) {
  Profile profile;
  const double seconds = add_call(profile, bound_, prefill_, 8, num_run(bound_, prefill_), [](uint32_t) { return 7; });
  EXPECT_NEAR(prediction_.of_prompt(profile, 8), seconds, 1e-9);
  EXPECT_NEAR(prediction_.of_prompt(profile, 32), 4 * seconds, 1e-9);
}

TEST_F(PredictionTest, the_rest_of_a_call_takes_as_much_more_than_a_step_as_its_beginning) {
  Profile step, part;
  add_call(step, bound_, decode_, 1, num_run(bound_, decode_), [](uint32_t) { return 10; });
  prediction_.add_decode(step);
  const size_t all = num_run(bound_, prefill_);
  add_call(part, bound_, prefill_, 8, all / 2, [](uint32_t) { return 50; });
  const double found = prediction_.of_prompt(part, 8);
  EXPECT_LE(found, 50e-6 * static_cast<double>(all) + 1e-9);
  EXPECT_GE(found, 50e-6 * static_cast<double>(all / 2));
}

}  // namespace
}  // namespace mote::test
