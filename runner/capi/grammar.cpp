#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "runner/capi/handles.h"
#include "runner/generation/options/compiled_grammars.h"
#include "runner/generation/vocabulary.h"

using mote::Code;
using mote::Status;
using mote::capi::enter;
using mote::capi::give;
using mote::capi::guarded;
using mote::capi::share;

namespace {

using Compiled = mote::Result<std::shared_ptr<const mote::Grammar>>;

// A model keeps those for its own vocabulary.
Compiled compiled(const mote::capi::Object<mote_vocabulary>& vocabulary, std::string_view source,
                  const mote::constraints::GrammarOptions& options, std::function<bool()> is_cancelled) {
  if (const auto model = vocabulary.model.lock(); model != nullptr)
    return mote::compiled_grammar(*model, std::string(source), options, is_cancelled);
  mote::constraints::WorkBudget budget(std::move(is_cancelled));
  return mote::Grammar::compile(vocabulary.vocabulary, source, options, budget);
}

}  // namespace

mote_error_code mote_model_vocabulary(const mote_model* handle, mote_vocabulary** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto model, share(handle));
    MOTE_ASSIGN(auto vocabulary, mote::vocabulary_of(*model->model));
    return give(out, std::move(vocabulary), std::weak_ptr<const mote::Model>(model->model));
  });
}

mote_error_code mote_vocabulary_open(const char* const* tokens, const size_t* token_bytes, size_t count,
                                     const int32_t* eos_ids, size_t num_eos_ids, mote_vocabulary** out,
                                     mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_REQUIRE_POINTER(tokens);
    MOTE_REQUIRE_POINTER(token_bytes);
    if (num_eos_ids > 0) MOTE_REQUIRE_POINTER(eos_ids);
    std::vector<std::string> texts;
    for (size_t i = 0; i < count; ++i) {
      MOTE_REQUIRE(tokens[i] != nullptr || token_bytes[i] == 0, Code::kInvalidArgument, "tokens[%zu] is NULL", i);
      texts.emplace_back(token_bytes[i] > 0 ? tokens[i] : "", token_bytes[i]);
    }
    MOTE_ASSIGN(auto vocabulary, mote::constraints::Vocabulary::make(
                                     std::move(texts), std::vector<int32_t>(eos_ids, eos_ids + num_eos_ids)));
    return give(out, std::move(vocabulary));
  });
}

void mote_vocabulary_close(mote_vocabulary* vocabulary) { mote::capi::close(vocabulary); }

mote_error_code mote_grammar_open(const mote_vocabulary* handle, const mote_grammar_options* requested,
                                  mote_grammar** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto vocabulary, share(handle));
    MOTE_REQUIRE_POINTER(requested);
    mote_grammar_options from{};
    MOTE_RETURN_IF_ERROR(mote::capi::read_struct(requested, from));
    MOTE_REQUIRE(from.source != nullptr || from.source_bytes == 0, Code::kInvalidArgument, "source is NULL");
    MOTE_REQUIRE(from.syntax >= MOTE_SYNTAX_JSON_SCHEMA && from.syntax <= MOTE_SYNTAX_LARK, Code::kInvalidArgument,
                 "syntax = %d: must be one of MOTE_SYNTAX_*, 0..3", from.syntax);
    MOTE_REQUIRE(
        from.json_whitespace >= MOTE_JSON_WHITESPACE_FLEXIBLE && from.json_whitespace <= MOTE_JSON_WHITESPACE_SPACED,
        Code::kInvalidArgument, "json_whitespace = %d: must be one of MOTE_JSON_WHITESPACE_*, 0..2",
        from.json_whitespace);
    mote::constraints::GrammarOptions options;
    options.syntax = static_cast<mote::constraints::Syntax>(from.syntax);
    options.whitespace = static_cast<mote::constraints::JsonWhitespace>(from.json_whitespace);
    const std::string_view source(from.source_bytes > 0 ? from.source : "", from.source_bytes);
    std::function<bool()> is_cancelled;
    if (from.is_cancelled != nullptr) {
      is_cancelled = [call = from.is_cancelled, data = from.user_data] { return call(data) != 0; };
    }
    MOTE_ASSIGN(auto grammar, compiled(*vocabulary, source, options, std::move(is_cancelled)));
    return give(out, std::move(grammar));
  });
}

void mote_grammar_close(mote_grammar* grammar) { mote::capi::close(grammar); }

mote_error_code mote_constraint_open(const mote_grammar* handle, mote_constraint** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto grammar, share(handle));
    return give(out, mote::Constraint(grammar->grammar));
  });
}

mote_error_code mote_constraint_copy(const mote_constraint* handle, mote_constraint** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto constraint, enter(handle));
    return give(out, constraint->constraint);
  });
}

void mote_constraint_close(mote_constraint* constraint) { mote::capi::close(constraint); }

mote_error_code mote_constraint_mask(const mote_constraint* handle, uint32_t* words, size_t num_words,
                                     mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto constraint, enter(handle));
    MOTE_REQUIRE_POINTER(words);
    return constraint->constraint.fill_mask({words, num_words});
  });
}

mote_error_code mote_constraint_accept(mote_constraint* handle, int32_t id, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto constraint, enter(handle));
    return constraint->constraint.accept(id);
  });
}

mote_error_code mote_constraint_get_info(const mote_constraint* handle, mote_constraint_info* info, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto constraint, enter(handle));
    MOTE_REQUIRE_POINTER(info);
    const mote::Constraint& state = constraint->constraint;
    mote_constraint_info result{};
    result.may_end = state.may_end();
    result.is_complete = state.is_complete();
    result.forced_token = state.forced_token().value_or(-1);
    result.num_tokens = state.grammar().vocabulary().num_ids();
    return mote::capi::write_struct(result, info);
  });
}
