#include "tokenizer/batch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/tokenizer/tiny_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace mote::tokenizer {
namespace {

TEST(Batch, every_item_is_worked_on_once) {
  for (const size_t threads : {0, 1, 3, 300}) {
    for (const size_t count : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> calls(count);
      for_each_in_threads(count, threads, [&](size_t i) { ++calls[i]; });
      for (const std::atomic<int>& number : calls) EXPECT_EQ(number, 1);
    }
  }
}

TEST(Batch, the_first_failure_in_the_order_of_items_is_thrown) {
  const auto fail = [](size_t i) {
    if (i % 2 == 1) throw std::runtime_error(std::to_string(i));
  };
  for (int repeat = 0; repeat < 20; ++repeat) {
    try {
      for_each_in_threads(100, 4, fail);
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) { EXPECT_STREQ(error.what(), "1"); }
  }
}

TEST(Batch, threads_share_a_tokenizer) {
  const auto tokenizer = Tokenizer::open(*compile_json(test::TinyTokenizer().json()));
  ASSERT_TRUE(tokenizer.ok());
  std::vector<std::string> texts;
  for (size_t i = 0; i < 500; ++i)
    texts.push_back(std::string(i % 40, 'a') + "bc ab<eos>" + std::string(i % 7, 'c') + " \u00e9");
  std::vector<std::vector<int32_t>> found(texts.size());
  for_each_in_threads(texts.size(), 8, [&](size_t i) { found[i] = *tokenizer->encode(texts[i], {}); });
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(found[i], *tokenizer->encode(texts[i], {})) << texts[i];
}

}  // namespace
}  // namespace mote::tokenizer
