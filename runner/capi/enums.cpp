// The enums of mote.h are those of the core, number for number. A value of the core that mote.h lacks is a switch that
// misses a case, which is an error; a test reads mote.h for values that do not stand here.
#include "base/log.h"
#include "runner/capi/mote.h"
#include "runner/chat/chat_turn.h"
#include "runner/generation/generation.h"
#include "runner/generation/options/option_table.h"
#include "runner/grammars/grammar.h"
#include "runner/replies/parser.h"
#include "runner/store/exchange.h"

#pragma GCC diagnostic error "-Wswitch"

namespace {

#define MOTE_SAME(constant, value) \
  case value: static_assert(static_cast<int32_t>(constant) == static_cast<int32_t>(value), #constant " differs")

#define MOTE_ERROR_CASE(name, value)   \
  MOTE_SAME(MOTE_ERROR_##name, value); \
  return #name

const char* name_of(mote::Code code) {
  using enum mote::Code;
  switch (code) {
    MOTE_SAME(MOTE_OK, kOk);
    return "OK";
    MOTE_ERROR_CASE(FILE_NOT_FOUND, kFileNotFound);
    MOTE_ERROR_CASE(FILE_UNREADABLE, kFileUnreadable);
    MOTE_ERROR_CASE(FILE_CHANGED, kFileChanged);
    MOTE_ERROR_CASE(FILE_UNWRITABLE, kFileUnwritable);
    MOTE_ERROR_CASE(INVALID_PROGRAM, kInvalidProgram);
    MOTE_ERROR_CASE(UNSUPPORTED_VERSION, kUnsupportedVersion);
    MOTE_ERROR_CASE(UNSUPPORTED_OP, kUnsupportedOp);
    MOTE_ERROR_CASE(INVALID_SESSION, kInvalidSession);
    MOTE_ERROR_CASE(UNSUPPORTED_BACKEND, kUnsupportedBackend);
    MOTE_ERROR_CASE(INVALID_TOKENIZER, kInvalidTokenizer);
    MOTE_ERROR_CASE(TEMPLATE, kInvalidTemplate);
    MOTE_ERROR_CASE(INVALID_ARGUMENT, kInvalidArgument);
    MOTE_ERROR_CASE(CONTEXT_FULL, kContextFull);
    MOTE_ERROR_CASE(INVALID_STATE, kInvalidState);
    MOTE_ERROR_CASE(OUT_OF_MEMORY, kOutOfMemory);
    MOTE_ERROR_CASE(CANCELLED, kCancelled);
    MOTE_ERROR_CASE(INTERNAL, kInternal);
  }
  return nullptr;
}

[[maybe_unused]] void same(mote::LogLevel level) {
  using enum mote::LogLevel;
  switch (level) {
    MOTE_SAME(MOTE_LOG_OFF, kOff);
    MOTE_SAME(MOTE_LOG_ERROR, kError);
    MOTE_SAME(MOTE_LOG_INFO, kInfo);
    MOTE_SAME(MOTE_LOG_DEBUG, kDebug);
  }
}

[[maybe_unused]] void same(mote::ReplyEventKind kind) {
  using enum mote::ReplyEventKind;
  static_assert(MOTE_REPLY_NONE == 0);  // no event
  switch (kind) {
    MOTE_SAME(MOTE_REPLY_CONTENT, kContent);
    MOTE_SAME(MOTE_REPLY_REASONING, kReasoning);
    MOTE_SAME(MOTE_REPLY_CALL_BEGIN, kCallBegin);
    MOTE_SAME(MOTE_REPLY_CALL_ARGUMENTS, kCallArguments);
    MOTE_SAME(MOTE_REPLY_CALL_END, kCallEnd);
    MOTE_SAME(MOTE_REPLY_CALL_DISCARDED, kCallDiscarded);
  }
}

[[maybe_unused]] void same(mote::constraints::Syntax syntax) {
  using enum mote::constraints::Syntax;
  switch (syntax) {
    MOTE_SAME(MOTE_SYNTAX_JSON_SCHEMA, kJsonSchema);
    MOTE_SAME(MOTE_SYNTAX_REGEX, kRegex);
    MOTE_SAME(MOTE_SYNTAX_GBNF, kGbnf);
    MOTE_SAME(MOTE_SYNTAX_LARK, kLark);
  }
}

[[maybe_unused]] void same(mote::constraints::JsonWhitespace whitespace) {
  using enum mote::constraints::JsonWhitespace;
  switch (whitespace) {
    MOTE_SAME(MOTE_JSON_WHITESPACE_FLEXIBLE, kFlexible);
    MOTE_SAME(MOTE_JSON_WHITESPACE_COMPACT, kCompact);
    MOTE_SAME(MOTE_JSON_WHITESPACE_SPACED, kSpaced);
  }
}

const char* name_of(mote::FinishReason reason) {
  using enum mote::FinishReason;
  static_assert(MOTE_FINISH_NONE == -1);  // no reason
  switch (reason) {
    MOTE_SAME(MOTE_FINISH_EOS, kEos);
    return "eos";
    MOTE_SAME(MOTE_FINISH_LENGTH, kLength);
    return "length";
    MOTE_SAME(MOTE_FINISH_STOP_STRING, kStopString);
    return "stop_string";
    MOTE_SAME(MOTE_FINISH_CANCELLED, kCancelled);
    return "cancelled";
    MOTE_SAME(MOTE_FINISH_STOP_TOKEN, kStopToken);
    return "stop_token";
    MOTE_SAME(MOTE_FINISH_TIME, kTime);
    return "time";
  }
  return nullptr;
}

[[maybe_unused]] void same(mote::store::Step::Kind action) {
  using enum mote::store::Step::Kind;
  switch (action) {
    MOTE_SAME(MOTE_DOWNLOAD_REQUEST, kRequest);
    MOTE_SAME(MOTE_DOWNLOAD_WAIT, kWait);
    MOTE_SAME(MOTE_DOWNLOAD_DONE, kDone);
  }
}

[[maybe_unused]] void same(mote::ChatField field) {
  using enum mote::ChatField;
  switch (field) {
    MOTE_SAME(MOTE_CHAT_MESSAGES, kMessages);
    MOTE_SAME(MOTE_CHAT_TOOLS, kTools);
    MOTE_SAME(MOTE_CHAT_DOCUMENTS, kDocuments);
    MOTE_SAME(MOTE_CHAT_VARIABLES, kVariables);
    MOTE_SAME(MOTE_CHAT_TEMPLATE, kChatTemplate);
    MOTE_SAME(MOTE_CHAT_CONTINUE_FINAL_MESSAGE, kContinueFinalMessage);
    MOTE_SAME(MOTE_CHAT_TOOL_CHOICE, kToolChoice);
    MOTE_SAME(MOTE_CHAT_RESPONSE_FORMAT, kResponseFormat);
  }
}

[[maybe_unused]] void same(mote::ChatEventKind kind) {
  using enum mote::ChatEventKind;
  switch (kind) {
    MOTE_SAME(MOTE_CHAT_NONE, kNone);
    MOTE_SAME(MOTE_CHAT_CONTENT, kContent);
    MOTE_SAME(MOTE_CHAT_REASONING, kReasoning);
    MOTE_SAME(MOTE_CHAT_CALL_BEGIN, kCallBegin);
    MOTE_SAME(MOTE_CHAT_CALL_ARGUMENTS, kCallArguments);
    MOTE_SAME(MOTE_CHAT_CALL_END, kCallEnd);
    MOTE_SAME(MOTE_CHAT_CALL_DISCARDED, kCallDiscarded);
    MOTE_SAME(MOTE_CHAT_DONE, kDone);
  }
}

[[maybe_unused]] void same(mote::OptionScope scope) {
  using enum mote::OptionScope;
  switch (scope) {
    MOTE_SAME(MOTE_SCOPE_GENERATION, kGeneration);
    MOTE_SAME(MOTE_SCOPE_BEAM_SEARCH, kBeamSearch);
    MOTE_SAME(MOTE_SCOPE_SESSION, kSession);
    MOTE_SAME(MOTE_SCOPE_MODEL, kModel);
  }
}

}  // namespace

const char* mote_finish_reason_name(mote_finish_reason reason) {
  return name_of(static_cast<mote::FinishReason>(reason));
}

const char* mote_error_name(mote_error_code code) { return name_of(static_cast<mote::Code>(code)); }
