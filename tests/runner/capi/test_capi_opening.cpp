// Models that are opened from a descriptor or from memory, watched and cancelled.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <vector>

#include "tests/runner/capi/fixture.h"

namespace mote {
namespace {

void count(void* owner) { ++*static_cast<int*>(owner); }

class CApiOpening : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream stream(file_.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    storage_.resize(text.size() + 128);
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    bytes_ = {storage_.data() + (64 - address % 64) % 64, text.size()};
    std::ranges::copy(text, bytes_.begin());
    expected_ = logits([&](mote_model** model) { return mote_model_open(path(), nullptr, model, &error_); });
    ASSERT_FALSE(expected_.empty());
  }
  void TearDown() override { EXPECT_EQ(num_handle_objects(), 0u); }

  const char* path() const { return path_.c_str(); }

  // Of a session that outlives the handle of its model; none if it cannot be opened.
  std::vector<float> logits(const std::function<int32_t(mote_model**)>& open) {
    mote_model* model = nullptr;
    if (open(&model) != MOTE_OK) return {};
    mote_session* session = nullptr;
    EXPECT_EQ(mote_session_open(model, nullptr, &session, &error_), MOTE_OK) << error_.message;
    auto info = sized<mote_model_info>();
    EXPECT_EQ(mote_model_get_info(model, &info, &error_), MOTE_OK);
    EXPECT_EQ(info.file_bytes, bytes_.size());
    mote_model_close(model);
    std::vector<float> result(static_cast<size_t>(info.vocab_size));
    const int32_t ids[] = {1, 2, 3};
    EXPECT_EQ(mote_session_prefill(session, ids, 3, result.data(), &error_), MOTE_OK) << error_.message;
    mote_session_close(session);
    return result;
  }

  test::TinyFile file_{test::tiny_program()};
  const std::string path_ = file_.path();
  std::vector<char> storage_;
  std::span<char> bytes_;  // of the file, at a multiple of 64
  std::vector<float> expected_;
  mote_error error_ = sized<mote_error>();
};

TEST_F(CApiOpening, a_descriptor_gives_what_the_path_gives) {
  const int fd = ::open(path(), O_RDONLY);
  const auto open = [&](mote_model** model) { return mote_model_open_fd(fd, 0, -1, nullptr, model, &error_); };
  EXPECT_EQ(logits(open), expected_) << error_.message;
  EXPECT_GE(::lseek(fd, 0, SEEK_CUR), 0) << "it is the caller's";
  ::close(fd);
  EXPECT_TRUE(logits(open).empty());
  EXPECT_EQ(error_.code, MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(error_.message, format("descriptor %d: descriptor = %d: is not open", fd, fd));
}

TEST_F(CApiOpening, messages_name_what_has_no_path) {
  const GivenOptions options(R"({"name": "assets/tiny.mote"})");
  mote_model* model = nullptr;
  EXPECT_EQ(mote_model_open_fd(-1, 0, -1, options, &model, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "assets/tiny.mote: descriptor = -1: is not open");
  EXPECT_EQ(mote_model_open_memory("short", 5, nullptr, nullptr, options, &model, &error_), MOTE_ERROR_INVALID_PROGRAM);
  EXPECT_EQ(std::string(error_.message).find("assets/tiny.mote: the file has 5 bytes"), 0u) << error_.message;
  EXPECT_EQ(mote_model_open_memory("short", 5, nullptr, nullptr, nullptr, &model, &error_), MOTE_ERROR_INVALID_PROGRAM);
  EXPECT_EQ(std::string(error_.message).find("memory: the file has 5 bytes"), 0u) << error_.message;
  EXPECT_EQ(model, nullptr);
}

TEST_F(CApiOpening, memory_is_used_in_place_and_released_with_the_last_session) {
  int released = 0;
  mote_model* model = nullptr;
  mote_session* session = nullptr;
  ASSERT_EQ(mote_model_open_memory(bytes_.data(), bytes_.size(), count, &released, nullptr, &model, &error_), MOTE_OK)
      << error_.message;
  ASSERT_EQ(mote_session_open(model, nullptr, &session, &error_), MOTE_OK);
  mote_model_close(model);
  EXPECT_EQ(released, 0);
  mote_session_close(session);
  EXPECT_EQ(released, 1);
  EXPECT_EQ(logits([&](mote_model** out) {
              return mote_model_open_memory(bytes_.data(), bytes_.size(), nullptr, nullptr, nullptr, out, &error_);
            }),
            expected_);
}

TEST_F(CApiOpening, memory_that_is_copied_is_released_before_the_call_returns) {
  const auto open = [&](char* data, const mote_options* options) {
    return logits([&](mote_model** model) {
      int released = 0;
      const mote_error_code code =
          mote_model_open_memory(data, bytes_.size(), count, &released, options, model, &error_);
      EXPECT_EQ(released, 1);
      std::fill_n(data, bytes_.size(), '\0');
      return code;
    });
  };
  std::vector<char> copy(bytes_.begin(), bytes_.end());
  std::ranges::copy(copy, bytes_.begin() + 1);
  EXPECT_EQ(open(bytes_.data() + 1, nullptr), expected_) << "no multiple of 64";
  std::ranges::copy(copy, bytes_.begin());
  EXPECT_EQ(open(bytes_.data(), GivenOptions(R"({"mmap": false})")), expected_);
}

TEST_F(CApiOpening, memory_is_released_when_the_call_fails) {
  int released = 0;
  mote_model* model = nullptr;
  const auto open = [&](const void* data, size_t bytes, mote_model** out) {
    return mote_model_open_memory(data, bytes, count, &released, nullptr, out, &error_);
  };
  EXPECT_EQ(open(nullptr, 100, &model), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(open(bytes_.data(), bytes_.size(), nullptr), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(open(bytes_.data(), 0, &model), MOTE_ERROR_INVALID_PROGRAM);
  EXPECT_EQ(open(bytes_.data(), bytes_.size() - 1, &model), MOTE_ERROR_INVALID_PROGRAM);
  EXPECT_EQ(released, 4);
}

struct Watched {
  std::vector<double> fractions;
  size_t cancelled_at = SIZE_MAX;
};

int32_t watch(void* user_data, double fraction) {
  auto& watched = *static_cast<Watched*>(user_data);
  watched.fractions.push_back(fraction);
  return watched.fractions.size() > watched.cancelled_at ? 1 : 0;
}

TEST_F(CApiOpening, tells_how_far_it_is_and_can_be_cancelled_wherever_it_tells) {
  for (const char* json : {R"({"mmap": true})", R"({"mmap": false})"}) {
    const GivenOptions options(json);
    const auto open = [&](mote_model** model) { return mote_model_open(path(), options, model, &error_); };
    Watched whole;
    ASSERT_EQ(mote_options_set_progress(options, watch, &whole, &error_), MOTE_OK);
    EXPECT_EQ(logits(open), expected_);
    ASSERT_GE(whole.fractions.size(), 3u);
    EXPECT_EQ(whole.fractions.front(), 0.0);
    EXPECT_EQ(whole.fractions.back(), 1.0);
    EXPECT_TRUE(std::ranges::is_sorted(whole.fractions));
    for (size_t i = 0; i < whole.fractions.size(); ++i) {
      Watched cancelling;
      cancelling.cancelled_at = i;
      ASSERT_EQ(mote_options_set_progress(options, watch, &cancelling, &error_), MOTE_OK);
      EXPECT_TRUE(logits(open).empty());
      EXPECT_EQ(error_.code, MOTE_ERROR_CANCELLED);
      EXPECT_EQ(cancelling.fractions.size(), i + 1);
      EXPECT_EQ(num_handle_objects(), 1u);  // the options
    }
    ASSERT_EQ(mote_options_set_progress(options, nullptr, nullptr, &error_), MOTE_OK);
    EXPECT_EQ(logits(open), expected_) << "nobody is told any more";
  }
}

}  // namespace
}  // namespace mote
