#include "runner/grammars/constraint.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>
#include <thread>

#include "runner/grammars/budget.h"

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

std::shared_ptr<const Grammar> compiled(const std::shared_ptr<const Vocabulary>& tokens, std::string_view source,
                                        Syntax syntax) {
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
  Constraint constraint(
      compiled(tokens, "root ::= \"(\" inner \")\"\ninner ::= root | \"a\" | \"\xC3\xA4\"", Syntax::kGbnf));
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

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kSmallStackBytes = size_t{4} << 20;  // calls take more room there
#else
constexpr size_t kSmallStackBytes = size_t{512} << 10;
#endif

// Runs it with as little room for calls as the smallest threads of phones have.
void run_in_a_small_thread(const std::function<void()>& body) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kSmallStackBytes), 0);
  pthread_t thread{};
  const auto call = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, call, const_cast<std::function<void()>*>(&body)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// Opens as many brackets as the constraint allows and closes them again.
int64_t write_nested(Constraint constraint, char open, std::string_view middle, char close) {
  int64_t depth = 0;
  while (depth < 3 * constraints::kMaxStackDepth && constraint.accept(open).ok()) ++depth;
  EXPECT_FALSE(allowed(constraint).empty());
  std::optional<Constraint> deepest = constraint;
  for (const char c : middle) EXPECT_TRUE(constraint.accept(c).ok()) << depth;
  for (int64_t i = 0; i < depth; ++i) EXPECT_TRUE(constraint.accept(close).ok()) << i;
  EXPECT_TRUE(constraint.may_end());
  deepest.reset();  // the last that holds what was opened
  return depth;
}

TEST(Constraint, deep_texts_come_to_an_end_in_small_threads) {
  run_in_a_small_thread([] {
    const auto tokens = vocabulary({"[[", "]]"});
    const Constraint nested(compiled(tokens, R"({"type": "array", "items": {"$ref": "#"}})", Syntax::kJsonSchema));
    EXPECT_GT(write_nested(nested, '[', "", ']'), 600);
    EXPECT_EQ(
        write_nested(Constraint(compiled(tokens, "root ::= \"(\" root \")\" | \"a\"", Syntax::kGbnf)), '(', "a", ')'),
        constraints::kMaxStackDepth);
  });
}

TEST(Constraint, deep_texts_that_may_be_read_in_many_ways_are_read_or_refused) {
  run_in_a_small_thread([] {
    Constraint constraint(compiled(vocabulary({}), "root ::= \"a\" root \"b\"? | \"c\"", Syntax::kGbnf));
    for (uint32_t i = 0; i < 2 * constraints::kMaxStackDepth && constraint.accept('a').ok(); ++i) {}
    std::vector<uint32_t> mask(constraint.grammar().vocabulary().mask_words());
    for (const char c : std::string_view("cbb")) {
      const Status status = constraint.accept(c);
      EXPECT_TRUE(status.ok() || status.code() == Code::kInvalidArgument);
      (void)constraint.fill_mask(mask);
    }
  });
}

std::string repeated(std::string_view text, size_t count) {
  std::string result;
  for (size_t i = 0; i < count; ++i) result += text;
  return result;
}

TEST(Grammar, deep_sources_compile_or_are_refused_in_small_threads) {
  run_in_a_small_thread([] {
    const auto tokens = vocabulary({});
    for (const size_t depth : {150, 199, 200, 201, 1'990, 2'010, 100'000}) {
      const std::pair<std::string, Syntax> sources[] = {
          {repeated(R"({"items":)", depth) + "{}" + repeated("}", depth), Syntax::kJsonSchema},
          {repeated(R"({"anyOf":[)", depth) + "{}" + repeated("]}", depth), Syntax::kJsonSchema},
          {repeated(R"({"properties":{"a":)", depth) + "{}" + repeated("}}", depth), Syntax::kJsonSchema},
          {R"({"const":)" + repeated("[", depth) + repeated("]", depth) + "}", Syntax::kJsonSchema},
          {repeated("(", depth) + "a" + repeated("|b)", depth), Syntax::kRegex},
          {"root ::= " + repeated("(", depth) + "\"a\"" + repeated("| \"b\")*", depth), Syntax::kGbnf},
          {"start: " + repeated("[", depth) + "\"a\"" + repeated("| \"b\"]", depth), Syntax::kLark},
      };
      for (const auto& [source, syntax] : sources) {
        const auto grammar = Grammar::compile(tokens, source, {.syntax = syntax});
        EXPECT_TRUE(depth <= 200 || !grammar.ok()) << source.substr(0, 20);
        EXPECT_TRUE(grammar.ok() || grammar.status().code() == Code::kInvalidArgument);
      }
    }
  });
}

// A chain of references is as deep as it is long.
TEST(Grammar, long_chains_of_references_compile_or_are_refused_in_small_threads) {
  run_in_a_small_thread([] {
    for (const int length : {150, 250, 3'000}) {
      std::string source = R"({"$ref": "#/$defs/0", "$defs": {)";
      for (int i = 0; i < length; ++i) {
        source += "\"" + std::to_string(i) + R"(": {"$ref": "#/$defs/)" + std::to_string(i + 1) + "\"}, ";
      }
      source += "\"" + std::to_string(length) + R"(": {"type": "null"}}})";
      EXPECT_EQ(Grammar::compile(vocabulary({}), source, {}).ok(), length < 200);
    }
  });
}

// So is one of patterns of the same string.
TEST(Grammar, many_patterns_of_a_string_compile_or_are_refused_in_small_threads) {
  run_in_a_small_thread([] {
    for (const size_t count : {100, 1'000, 10'000}) {
      const std::string source =
          R"({"type": "string", "allOf": [)" + repeated(R"({"pattern": "^a"}, )", count) + "true]}";
      const auto grammar = Grammar::compile(vocabulary({}), source, {});
      EXPECT_TRUE(grammar.ok() || grammar.status().code() == Code::kInvalidArgument);
    }
  });
}

TEST(Vocabulary, refuses_what_it_has_not) {
  EXPECT_EQ(Vocabulary::make({}, {}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Vocabulary::make({"a"}, {1}).status().message(), "end-of-sequence token 1: must be 0..0");
}

}  // namespace
}  // namespace mote
