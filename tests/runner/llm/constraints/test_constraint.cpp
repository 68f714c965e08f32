#include "runner/llm/constraints/constraint.h"

#include <gtest/gtest.h>

#include <thread>

namespace mote {
namespace {

using constraints::GrammarOptions;
using constraints::Syntax;
using constraints::Vocabulary;

constexpr int32_t kEos = 256;

// Every byte, the end, and some pieces.
std::shared_ptr<const Vocabulary> vocabulary(const std::vector<std::string>& pieces) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  tokens.emplace_back();
  tokens.insert(tokens.end(), pieces.begin(), pieces.end());
  return *Vocabulary::make(std::move(tokens), {kEos});
}

std::shared_ptr<const Grammar> compiled(const std::shared_ptr<const Vocabulary>& tokens, std::string_view source, Syntax syntax) {
  Result<std::shared_ptr<const Grammar>> grammar = Grammar::compile(tokens, source, {.syntax = syntax});
  EXPECT_TRUE(grammar.ok()) << grammar.status().message();
  return *grammar;
}

std::vector<int32_t> allowed(const Constraint& constraint) {
  std::vector<uint32_t> mask(constraint.grammar().vocabulary().mask_words());
  EXPECT_TRUE(constraint.fill_mask(mask).ok());
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < constraint.grammar().vocabulary().num_ids(); ++id) {
    if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1U) != 0) ids.push_back(id);
  }
  return ids;
}

using Ids = std::vector<int32_t>;

TEST(Constraint, allows_tokens_that_go_across_rules_and_characters) {
  const auto tokens = vocabulary({"a)", "a))", "a)))", "\xC3", "\xA4", "\xA4)", ")("});
  Constraint constraint(compiled(tokens, "root ::= \"(\" inner \")\"\ninner ::= root | \"a\" | \"\xC3\xA4\"", Syntax::kGbnf));
  ASSERT_TRUE(constraint.accept('(').ok());
  EXPECT_EQ(allowed(constraint), (Ids{'(', 'a', 0xC3, 257, 260}));
  ASSERT_TRUE(constraint.accept('(').ok());
  EXPECT_EQ(allowed(constraint), (Ids{'(', 'a', 0xC3, 257, 258, 260}));
  ASSERT_TRUE(constraint.accept(260).ok());
  EXPECT_EQ(allowed(constraint), (Ids{0xA4, 261, 262}));
  EXPECT_FALSE(constraint.accept(')').ok());
  ASSERT_TRUE(constraint.accept(262).ok());
  EXPECT_FALSE(constraint.may_end());
  ASSERT_TRUE(constraint.accept(')').ok());
  EXPECT_TRUE(constraint.may_end());
  EXPECT_TRUE(constraint.is_complete());
  EXPECT_EQ(allowed(constraint), (Ids{kEos}));
  EXPECT_EQ(constraint.forced_token(), kEos);
  ASSERT_TRUE(constraint.accept(kEos).ok());
  EXPECT_EQ(allowed(constraint), Ids{});
  EXPECT_FALSE(constraint.accept(kEos).ok());
}

TEST(Constraint, special_tokens_come_only_at_the_end) {
  std::vector<std::string> tokens = {"a", "", "b"};
  Constraint constraint(compiled(*Vocabulary::make(std::move(tokens), {1}), "a?", Syntax::kRegex));
  EXPECT_EQ(allowed(constraint), (Ids{0, 1}));
  ASSERT_TRUE(constraint.accept(0).ok());
  EXPECT_EQ(allowed(constraint), (Ids{1}));
  EXPECT_FALSE(constraint.accept(-1).ok());
  EXPECT_FALSE(constraint.accept(3).ok());
}

TEST(Constraint, the_longest_token_is_forced_where_no_longer_one_could_come) {
  const auto tokens = vocabulary({"{\"", "name", "name\":", "name\": \"x"});
  Constraint constraint(compiled(tokens, "\\{\"name\": (1|2)\\}", Syntax::kRegex));
  EXPECT_EQ(constraint.forced_token(), 257);
  ASSERT_TRUE(constraint.accept(257).ok());
  EXPECT_EQ(constraint.forced_token(), 259);
  ASSERT_TRUE(constraint.accept(259).ok());
  EXPECT_EQ(constraint.forced_token(), ' ');
  ASSERT_TRUE(constraint.accept(' ').ok());
  EXPECT_EQ(constraint.forced_token(), std::nullopt);
  ASSERT_TRUE(constraint.accept('2').ok());
  EXPECT_EQ(constraint.forced_token(), '}');
}

TEST(Constraint, copies_go_their_own_ways) {
  Constraint first(compiled(vocabulary({}), "ab|cd", Syntax::kRegex));
  Constraint second = first;
  ASSERT_TRUE(first.accept('a').ok());
  ASSERT_TRUE(second.accept('c').ok());
  EXPECT_EQ(allowed(first), (Ids{'b'}));
  EXPECT_EQ(allowed(second), (Ids{'d'}));
}

TEST(Constraint, a_text_that_no_token_goes_on_with_is_an_error) {
  Constraint constraint(compiled(*Vocabulary::make({"a", ""}, {1}), "ab", Syntax::kRegex));
  ASSERT_TRUE(constraint.accept(0).ok());
  std::vector<uint32_t> mask(1);
  EXPECT_EQ(constraint.fill_mask(mask).code(), Code::kInvalidArgument);
}

TEST(Constraint, threads_share_a_grammar) {
  const auto grammar = compiled(vocabulary({"\": ", "}, ", "ab"}), "true", Syntax::kJsonSchema);
  std::vector<std::thread> threads;
  std::vector<std::vector<Ids>> seen(4);
  for (size_t t = 0; t < seen.size(); ++t) {
    threads.emplace_back([&, t] {
      Constraint constraint(grammar);
      for (const char c : std::string_view("{\"a\": [1, {\"b\": \"\xC3\xA4\"}]}")) {
        seen[t].push_back(allowed(constraint));
        EXPECT_TRUE(constraint.accept(static_cast<unsigned char>(c)).ok());
      }
      EXPECT_TRUE(constraint.may_end());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& other : seen) EXPECT_EQ(other, seen[0]);
}

TEST(Vocabulary, refuses_what_it_has_not) {
  EXPECT_EQ(Vocabulary::make({}, {}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Vocabulary::make({"a"}, {1}).status().message(), "end-of-sequence token 1: must be 0..0");
}

}  // namespace
}  // namespace mote
