// How a device is tried, and what is kept of that.
#include <gtest/gtest.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

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

// Compares all variants, of which one has a fault; what it was told of before each, and after all.
struct Comparing {
  std::vector<uint32_t> tried;
  bool is_lost = false;

  Compared with(GpuFeatures wrong, bool takes_device, Code code = Code::kUnsupportedBackend) {
    return compare_variants(
        kAll | GpuFeature::kStaging, kForever,
        [this, wrong, takes_device, code](GpuFeatures variant) -> Status {
          if (variant != wrong) return {};
          is_lost = takes_device;
          return {code, "wrong"};
        },
        [this](GpuFeatures variant) { tried.push_back(variant.bits()); }, [this] { return is_lost; });
  }
};

TEST(Variants, thatAreWrongAreSetAsideAlone) {
  for (const GpuFeature wrong : {GpuFeature::kSubgroups, GpuFeature::kDot, GpuFeature::kStaging}) {
    Comparing comparing;
    const Compared compared = comparing.with(wrong, false);
    EXPECT_EQ(compared.set_aside, GpuFeatures(wrong));
    EXPECT_FALSE(compared.is_gone);
    EXPECT_EQ(comparing.tried.size(), 4u);
    EXPECT_EQ(comparing.tried.front(), 0u);
  }
}

TEST(Variants, thatTakeTheDeviceAreTheLastThatAreTried) {
  Comparing comparing;
  const Compared compared = comparing.with(GpuFeature::kDot, true);
  EXPECT_TRUE(compared.is_gone);
  EXPECT_EQ(compared.set_aside, GpuFeatures(GpuFeature::kDot));
  EXPECT_EQ(comparing.tried.back(), GpuFeatures(GpuFeature::kDot).bits());
}

TEST(Variants, thatDoNotEndAreSetAside) {
  const auto gate = std::make_shared<std::mutex>();
  std::unique_lock closed(*gate);
  const Compared compared = compare_variants(
      kAll, std::chrono::milliseconds(20),
      [gate](GpuFeatures variant) -> Status {
        if (variant.has(GpuFeature::kSubgroups)) const std::lock_guard waits(*gate);
        return {};
      },
      [](GpuFeatures) {}, [] { return false; });
  EXPECT_TRUE(compared.is_gone);
  EXPECT_EQ(compared.set_aside, GpuFeatures(GpuFeature::kSubgroups));
  EXPECT_EQ(compared.reason, "it did not answer");
}

TEST(Variants, areNotComparedWhereThePlainestFails) {
  Comparing comparing;
  const Compared compared = comparing.with({}, false);
  EXPECT_EQ(compared.set_aside, GpuFeatures());
  EXPECT_EQ(comparing.tried, std::vector<uint32_t>{0});
}

TEST(Variants, thatAProcessDiedOfAreSetAsideAlone) {
  const Verdict verdict{.state = Verdict::State::trying,
                        .num_begun = 1,
                        .set_aside = GpuFeatures(GpuFeature::kStaging).bits(),
                        .trying = GpuFeatures(GpuFeature::kDot).bits()};
  const Verdict after = verdict.after_a_death();
  EXPECT_EQ(after.state, Verdict::State::unknown);
  EXPECT_EQ(after.num_begun, 0u);
  EXPECT_EQ(after.features_set_aside(), GpuFeatures(GpuFeature::kStaging) | GpuFeature::kDot);
  const Verdict elsewhere{.state = Verdict::State::trying, .num_begun = 1};
  EXPECT_EQ(elsewhere.after_a_death(), elsewhere);
}

TEST(Forms, areReadAsTheyWereWritten) {
  const ProductForm form{GpuFeatures(GpuFeature::kDot) | GpuFeature::kStaging, 2, 8, 4, 1};
  EXPECT_EQ(form_text(form), "dot+staging 2x8x4x1");
  EXPECT_EQ(parse_product_form(form_text(form)), form);
  for (const char* wrong : {"", "dot", "dot ", "dot 2x8x4", "dot 2x8x4x1x", "dot 3x8x4x1", "dot 2x8x4x0", "fp 2x8x4x1",
                            "float16 2x8x4x1", "dot 2x128x4x1", "dot 2x8x32x1", "dot 4294967296x8x4x1"})
    EXPECT_FALSE(parse_product_form(wrong).has_value()) << wrong;
}

TEST(Forms, fitWhatADeviceHas) {
  VkPhysicalDeviceLimits limits{};
  limits.maxComputeSharedMemorySize = 16384;
  limits.maxComputeWorkGroupInvocations = limits.maxComputeWorkGroupSize[0] = 128;
  const ProductForm most{GpuFeatures(GpuFeature::kDot) | GpuFeature::kStaging, 16, 16, 16, 8};
  for (const int64_t rows : {1, 8, 64, 1000}) {
    const ProductForm form = fitted(most, 8, rows, limits, false);
    EXPECT_LE(form.invocations(), 128u);
    EXPECT_LE(form.tokens, rows);
    EXPECT_EQ(form.uses.has(GpuFeature::kStaging), rows >= 8);
    EXPECT_TRUE(form.uses.has(GpuFeature::kDot));
  }
}

TEST(Verdicts, areReadAsTheyWereWritten) {
  const ProductForms forms = forms_that_use(kAll, false);
  const Verdict verdict{.state = Verdict::State::fails,
                        .num_begun = 3,
                        .set_aside = 5,
                        .trying = 2,
                        .gpu_ns = 1234567890123,
                        .cpu_ns = 42,
                        .products = forms,
                        .reason = "its logits\nare not those of PyTorch"};
  EXPECT_EQ(parse_verdict(to_text(verdict)), verdict);
  EXPECT_EQ(parse_verdict(to_text({})), Verdict());
}

TEST(Verdicts, thatAreDamagedAreReadAsNothingOrAsVerdicts) {
  const std::string text = to_text({.state = Verdict::State::works,
                                    .gpu_ns = 12,
                                    .cpu_ns = 34,
                                    .products = forms_that_use(kAll, false),
                                    .reason = "none"});
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
#if defined(__SANITIZE_ADDRESS__)
  const __lsan::ScopedDisabler disabler;  // lavapipe leaves memory of LLVM's behind, on some CPUs
#endif
  const auto context = gpu::GpuContext::open();
  if (!context.ok()) GTEST_SKIP() << context.status().message();
  const uint64_t free = (*context)->free_bytes();
  if ((*context)->tells_budget()) {  // it may be what the whole system has free, and change meanwhile
    EXPECT_TRUE((*context)->require_free(free / 2, "this").ok());
    EXPECT_EQ((*context)->require_free(2 * free, "this").code(), Code::kOutOfMemory);
    return;
  }
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
