// How a device is tried, and what is kept of that.
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "backends/vulkan/proof.h"
#include "tests/backends/mutations.h"

namespace mote::vulkan::test {
namespace {

using gpu::GpuFeature;
using gpu::GpuFeatures;

constexpr std::chrono::seconds kForever{600};
const GpuFeatures kAll = GpuFeatures(GpuFeature::kSubgroups) | GpuFeature::kDot | GpuFeature::kFloat16;

struct Tried {
  std::vector<uint32_t> sets;
  // An attempt that fails wherever one of `wrong` is used.
  Attempt wrong_with(GpuFeatures wrong) {
    return [this, wrong](GpuFeatures features) -> Result<uint64_t> {
      sets.push_back(features.bits());
      if ((features & wrong).bits() != 0) return Status(Code::kUnsupportedBackend, "wrong with " + to_string(features));
      return uint64_t{7};
    };
  }
};

TEST(Proof, ofADeviceThatIsRightTakesOneAttempt) {
  Tried tried;
  const Verdict verdict = prove(kAll, false, kForever, tried.wrong_with({}));
  EXPECT_EQ(verdict.state, Verdict::State::works);
  EXPECT_EQ(verdict.set_aside, 0u);
  EXPECT_EQ(verdict.gpu_ns, 7u);
  EXPECT_EQ(tried.sets, std::vector<uint32_t>{kAll.bits()});
}

TEST(Proof, setsOneWrongVariantAsideAlone) {
  for (const GpuFeature wrong : {GpuFeature::kSubgroups, GpuFeature::kDot, GpuFeature::kFloat16}) {
    Tried tried;
    const Verdict verdict = prove(kAll, false, kForever, tried.wrong_with(wrong));
    EXPECT_EQ(verdict.state, Verdict::State::works);
    EXPECT_EQ(verdict.features_set_aside(), GpuFeatures(wrong));
  }
}

TEST(Proof, setsAllVariantsAsideWhereTwoAreWrong) {
  Tried tried;
  const Verdict verdict =
      prove(kAll, false, kForever, tried.wrong_with(GpuFeatures(GpuFeature::kSubgroups) | GpuFeature::kDot));
  EXPECT_EQ(verdict.state, Verdict::State::works);
  EXPECT_EQ(verdict.features_set_aside(), kAll);
}

TEST(Proof, failsWithWhatThePlainestVariantsSay) {
  const Verdict verdict = prove(kAll, false, kForever, [](GpuFeatures features) -> Result<uint64_t> {
    return Status(Code::kInternal, "the driver failed with " + to_string(features));
  });
  EXPECT_EQ(verdict.state, Verdict::State::fails);
  EXPECT_EQ(verdict.reason, "the driver failed with none");
}

TEST(Proof, triesThePlainestVariantsAloneAfterAProcessThatDied) {
  Tried tried;
  const Verdict verdict = prove(kAll, true, kForever, tried.wrong_with({}));
  EXPECT_EQ(verdict.features_set_aside(), kAll);
  EXPECT_EQ(tried.sets, std::vector<uint32_t>{0});
}

TEST(Proof, saysNothingOfADeviceWhereMemoryWasLacking) {
  const Verdict verdict = prove(
      kAll, false, kForever, [](GpuFeatures) -> Result<uint64_t> { return Status(Code::kOutOfMemory, "none left"); });
  EXPECT_EQ(verdict.state, Verdict::State::unknown);
}

TEST(Proof, givesUpOnAnAttemptThatDoesNotEnd) {
  struct Gate {
    std::mutex mutex;
    std::condition_variable opened;
    bool is_open = false;
    int num_waiting = 0, num_through = 0;
  };
  const auto gate = std::make_shared<Gate>();
  const Verdict verdict = prove(kAll, false, std::chrono::milliseconds(20), [gate](GpuFeatures) -> Result<uint64_t> {
    std::unique_lock lock(gate->mutex);
    ++gate->num_waiting;
    gate->opened.wait(lock, [&] { return gate->is_open; });
    ++gate->num_through;
    gate->opened.notify_all();
    return uint64_t{7};
  });
  EXPECT_EQ(verdict.state, Verdict::State::fails);
  EXPECT_EQ(verdict.reason, "it did not answer");
  std::unique_lock lock(gate->mutex);
  gate->is_open = true;
  gate->opened.notify_all();
  gate->opened.wait(lock, [&] { return gate->num_through == gate->num_waiting; });
  EXPECT_LE(gate->num_waiting, 1);  // nothing else is asked of such a device
}

TEST(Verdicts, areReadAsTheyWereWritten) {
  const Verdict verdict{.state = Verdict::State::fails,
                        .num_begun = 3,
                        .set_aside = 5,
                        .gpu_ns = 1234567890123,
                        .cpu_ns = 42,
                        .reason = "its logits\nare not those of PyTorch"};
  EXPECT_EQ(parse_verdict(to_text(verdict)), verdict);
  EXPECT_EQ(parse_verdict(to_text({})), Verdict());
}

TEST(Verdicts, thatAreDamagedAreReadAsNothingOrAsVerdicts) {
  const std::string text = to_text({.state = Verdict::State::works, .gpu_ns = 12, .cpu_ns = 34, .reason = "none"});
  for (size_t length = 0; length + 5 < text.size(); ++length)
    EXPECT_FALSE(parse_verdict(text.substr(0, length)).has_value()) << length;
  for (size_t i = 0; i < 2000; ++i) {
    mote::test::Random random(i);
    std::string damaged = text;
    for (int count = 0; count < 3; ++count)
      damaged[mote::test::below(random, damaged.size())] = static_cast<char>(mote::test::below(random, 256));
    const std::optional<Verdict> read = parse_verdict(damaged);
    EXPECT_TRUE(!read || read->state <= Verdict::State::fails);
  }
  for (const char* wrong :
       {"", "works", "works 1 2 3\n", "works -1 0 0 0\n", "works 99999999999 0 0 0\n", "broken 0 0 0 0\n"})
    EXPECT_FALSE(parse_verdict(wrong).has_value()) << wrong;
}

TEST(Verdicts, sayWhyTheCpuIsFaster) {
  Verdict verdict{.state = Verdict::State::works, .gpu_ns = 8'000'000, .cpu_ns = 9'000'000};
  EXPECT_EQ(verdict.why_slower("GPU"), "");
  std::swap(verdict.gpu_ns, verdict.cpu_ns);
  EXPECT_NE(verdict.why_slower("GPU").find("9.0 ms a token and the CPU 8.0 ms"), std::string::npos);
  verdict.cpu_ns = 0;
  EXPECT_NE(verdict.why_slower("GPU").find("not known to be faster"), std::string::npos);
}

TEST(Memory, isAskedForBeforeItIsTaken) {
  const auto context = gpu::GpuContext::open();
  if (!context.ok()) GTEST_SKIP() << context.status().message();
  const uint64_t free = (*context)->free_bytes();
  EXPECT_TRUE((*context)->require_free(free, "this").ok());
  const Status refused = (*context)->require_free(free + 1, "this");
  EXPECT_EQ(refused.code(), Code::kOutOfMemory);
  EXPECT_NE(refused.message().find("this takes"), std::string::npos) << refused.message();
  EXPECT_NE(refused.message().find("has"), std::string::npos) << refused.message();
  EXPECT_EQ(gpu::GpuBuffer::make(*context, free + 1, gpu::Place::device).status().code(), Code::kOutOfMemory);
  {
    const auto buffer = gpu::GpuBuffer::make(*context, 1 << 20, gpu::Place::device);
    ASSERT_TRUE(buffer.ok());
    EXPECT_LE((*context)->free_bytes(), free - (1 << 20));
  }
  EXPECT_EQ((*context)->free_bytes(), free);
}

}  // namespace
}  // namespace mote::vulkan::test
