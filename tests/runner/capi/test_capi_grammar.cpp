#include <cstring>
#include <string>
#include <vector>

#include "tests/runner/capi/fixture.h"

namespace mote {
namespace {

class CApiGrammar : public testing::Test {
 protected:
  void SetUp() override {
    const char* tokens[] = {"a", "b", nullptr, "ab"};
    const size_t sizes[] = {1, 1, 0, 2};
    const int32_t eos = 2;
    ASSERT_EQ(mote_vocabulary_open(tokens, sizes, 4, &eos, 1, &vocabulary_, &error_), MOTE_OK) << error_.message;
  }
  void TearDown() override { mote_vocabulary_close(vocabulary_); }

  int32_t open(const char* source, int32_t syntax, mote_grammar** grammar) {
    auto options = sized<mote_grammar_options>();
    options.source = source;
    options.source_bytes = std::strlen(source);
    options.syntax = static_cast<mote_syntax>(syntax);
    return mote_grammar_open(vocabulary_, &options, grammar, &error_);
  }

  mote_error error_ = sized<mote_error>();
  mote_vocabulary* vocabulary_ = nullptr;
};

TEST_F(CApiGrammar, masks_follow_a_text) {
  mote_grammar* grammar = nullptr;
  ASSERT_EQ(open("ab|aa", MOTE_SYNTAX_REGEX, &grammar), MOTE_OK) << error_.message;
  mote_constraint* constraint = nullptr;
  ASSERT_EQ(mote_constraint_open(grammar, &constraint, &error_), MOTE_OK);
  mote_grammar_close(grammar);  // the constraint keeps what it needs
  mote_vocabulary_close(vocabulary_);
  vocabulary_ = nullptr;
  uint32_t mask = 0;
  ASSERT_EQ(mote_constraint_mask(constraint, &mask, 1, &error_), MOTE_OK);
  EXPECT_EQ(mask, 0b1001U);
  mote_constraint* copy = nullptr;
  ASSERT_EQ(mote_constraint_copy(constraint, &copy, &error_), MOTE_OK);
  EXPECT_EQ(mote_constraint_accept(constraint, 1, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(mote_constraint_accept(constraint, 3, &error_), MOTE_OK);
  auto info = sized<mote_constraint_info>();
  ASSERT_EQ(mote_constraint_get_info(constraint, &info, &error_), MOTE_OK);
  EXPECT_EQ(info.may_end, 1);
  EXPECT_EQ(info.is_complete, 1);
  EXPECT_EQ(info.forced_token, 2);
  EXPECT_EQ(info.num_tokens, 4);
  ASSERT_EQ(mote_constraint_get_info(copy, &info, &error_), MOTE_OK);
  EXPECT_EQ(info.may_end, 0);
  EXPECT_EQ(info.forced_token, -1);
  mote_constraint_close(copy);
  mote_constraint_close(constraint);
}

TEST_F(CApiGrammar, compiling_can_be_cancelled) {
  const std::string source = "(a|b)*a(a|b){15}";
  auto options = sized<mote_grammar_options>();
  options.source = source.c_str();
  options.source_bytes = source.size();
  options.syntax = MOTE_SYNTAX_REGEX;
  int asked = 0;
  options.user_data = &asked;
  options.is_cancelled = [](void* data) { return static_cast<int32_t>(++*static_cast<int*>(data) == 2); };
  mote_grammar* grammar = nullptr;
  EXPECT_EQ(mote_grammar_open(vocabulary_, &options, &grammar, &error_), MOTE_ERROR_CANCELLED);
  EXPECT_EQ(grammar, nullptr);
  EXPECT_EQ(asked, 2);
  options.is_cancelled = [](void*) { return 0; };
  EXPECT_EQ(mote_grammar_open(vocabulary_, &options, &grammar, &error_), MOTE_OK) << error_.message;
  mote_grammar_close(grammar);
}

TEST_F(CApiGrammar, errors_name_the_place) {
  mote_grammar* grammar = nullptr;
  EXPECT_EQ(open("{\"type\": 3}", MOTE_SYNTAX_JSON_SCHEMA, &grammar), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(error_.message, "#/type = 3"), nullptr) << error_.message;
  EXPECT_EQ(open("root ::=\n  (", MOTE_SYNTAX_GBNF, &grammar), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(error_.message, "line 2"), nullptr) << error_.message;
  EXPECT_EQ(open("a", 4, &grammar), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(open("\xFF", MOTE_SYNTAX_REGEX, &grammar), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(grammar, nullptr);
}

TEST_F(CApiGrammar, null_is_an_error_everywhere) {
  mote_grammar* grammar = nullptr;
  ASSERT_EQ(open("a", MOTE_SYNTAX_REGEX, &grammar), MOTE_OK);
  mote_constraint* constraint = nullptr;
  ASSERT_EQ(mote_constraint_open(grammar, &constraint, nullptr), MOTE_OK);
  auto options = sized<mote_grammar_options>();
  auto info = sized<mote_constraint_info>();
  mote_vocabulary* vocabulary = nullptr;
  mote_grammar* other = nullptr;
  mote_constraint* copy = nullptr;
  uint32_t mask = 0;
  const char* token = nullptr;
  const size_t one = 1;
  options.source_bytes = 1;
  for (const int32_t code : {mote_model_vocabulary(nullptr, &vocabulary, nullptr),
                             mote_vocabulary_open(nullptr, &one, 1, nullptr, 0, &vocabulary, nullptr),
                             mote_vocabulary_open(&token, nullptr, 1, nullptr, 0, &vocabulary, nullptr),
                             mote_vocabulary_open(&token, &one, 1, nullptr, 0, &vocabulary, nullptr),
                             mote_vocabulary_open(&token, &one, 1, nullptr, 1, &vocabulary, nullptr),
                             mote_vocabulary_open(&token, &one, 1, nullptr, 0, nullptr, nullptr),
                             mote_grammar_open(nullptr, &options, &other, nullptr),
                             mote_grammar_open(vocabulary_, nullptr, &other, nullptr),
                             mote_grammar_open(vocabulary_, &options, &other, nullptr),
                             mote_grammar_open(vocabulary_, &options, nullptr, nullptr),
                             mote_constraint_open(nullptr, &copy, nullptr),
                             mote_constraint_open(grammar, nullptr, nullptr),
                             mote_constraint_copy(nullptr, &copy, nullptr),
                             mote_constraint_copy(constraint, nullptr, nullptr),
                             mote_constraint_mask(nullptr, &mask, 1, nullptr),
                             mote_constraint_mask(constraint, nullptr, 1, nullptr),
                             mote_constraint_mask(constraint, &mask, 0, nullptr),
                             mote_constraint_mask(constraint, &mask, 2, nullptr),
                             mote_constraint_accept(nullptr, 0, nullptr),
                             mote_constraint_get_info(nullptr, &info, nullptr),
                             mote_constraint_get_info(constraint, nullptr, nullptr)}) {
    EXPECT_EQ(code, MOTE_ERROR_INVALID_ARGUMENT);
  }
  mote_constraint_close(constraint);
  mote_grammar_close(grammar);
  mote_constraint_close(nullptr);
  mote_grammar_close(nullptr);
  mote_vocabulary_close(nullptr);
}

TEST_F(CApiGrammar, a_model_without_tokenizer_has_no_vocabulary_and_takes_no_grammar) {
  test::ProgramBuilder builder = test::tiny_program();
  builder.tokenizer.clear();
  const test::TinyFile file(builder);
  mote_model* model = nullptr;
  ASSERT_EQ(mote_model_open(file.path().c_str(), nullptr, &model, &error_), MOTE_OK);
  mote_vocabulary* vocabulary = nullptr;
  EXPECT_EQ(mote_model_vocabulary(model, &vocabulary, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(error_.message, "no tokenizer"), nullptr) << error_.message;
  mote_session* session = nullptr;
  ASSERT_EQ(mote_session_open(model, nullptr, &session, &error_), MOTE_OK);
  mote_grammar* grammar = nullptr;
  ASSERT_EQ(open("a", MOTE_SYNTAX_REGEX, &grammar), MOTE_OK);
  const GivenOptions options;
  options.set(grammar);
  const int32_t id = 0;
  mote_generation* generation = nullptr;
  EXPECT_EQ(mote_generation_begin(session, &id, 1, options, &generation, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  mote_grammar_close(grammar);
  mote_session_close(session);
  mote_model_close(model);
}

}  // namespace
}  // namespace mote
