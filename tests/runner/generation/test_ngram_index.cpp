#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runner/generation/speculation/ngram_index.h"
#include "tests/runner/session/random_ids.h"

namespace mote {
namespace {

using test::Ids;
using test::random_ids;

// What the index should find, by looking everywhere.
std::optional<NgramIndex::Match> search(std::span<const int32_t> text) {
  NgramIndex::Match best;
  for (size_t end = text.size() - 1; end >= NgramIndex::kShortest; --end) {
    size_t length = 0;
    while (length < std::min(NgramIndex::kLongest, end) && text[end - 1 - length] == text[text.size() - 1 - length])
      ++length;
    if (length >= NgramIndex::kShortest && length > best.length) best = {end, length};
  }
  return best.length == 0 ? std::nullopt : std::optional(best);
}

void expect_same(const NgramIndex& index, std::span<const int32_t> text) {
  const auto found = index.find(), expected = search(text);
  ASSERT_EQ(found.has_value(), expected.has_value()) << text.size();
  if (!found.has_value()) return;
  EXPECT_EQ(found->length, expected->length);
  EXPECT_EQ(found->end, expected->end);
}

TEST(NgramIndex, finds_the_longest_and_newest_place) {
  std::mt19937 random(1);
  NgramIndex index;
  Ids text = random_ids(random, 3, 4);
  while (text.size() < 120) {
    index.update(text, text.size() > 3);
    expect_same(index, text);
    text.push_back(static_cast<int32_t>(random() % 4));
  }
}

TEST(NgramIndex, follows_a_text_that_goes_back) {
  std::mt19937 random(2);
  NgramIndex index;
  Ids text;
  for (int round = 0; round < 200; ++round) {
    text.resize(random() % (text.size() + 1));
    const Ids more = random_ids(random, 3 + random() % 8, 3);
    text.insert(text.end(), more.begin(), more.end());
    if (text.size() > 150) text.resize(20);
    index.update(text, false);
    ASSERT_TRUE(std::equal(text.begin(), text.end(), index.text().begin(), index.text().end()));
    expect_same(index, text);
  }
}

}  // namespace
}  // namespace mote
