#include "tokenizer/pretokenize/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <new>

#include "base/utf8.h"

namespace mote::tokenizer {

template <auto free_function>
struct Pcre2Deleter {
  template <typename T> void operator()(T* pointer) const { free_function(pointer); }
};

namespace {

constexpr size_t kMaxPatternBytes = 16384;
constexpr uint32_t kMatchLimit = 2'000'000;
constexpr uint32_t kDepthLimit = 100'000;
constexpr uint32_t kHeapLimitKib = 16'384;
constexpr size_t kJitStackBytes = 1 << 20;

using Code8 = std::unique_ptr<pcre2_code, Pcre2Deleter<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Pcre2Deleter<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Pcre2Deleter<pcre2_match_context_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Pcre2Deleter<pcre2_compile_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Pcre2Deleter<pcre2_jit_stack_free>>;

std::string error_text(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

// A thread's working memory for matching; any pattern may use it.
struct Scratch {
  MatchData data;
  MatchContext context;
  JitStack jit_stack;
};

Scratch make_scratch() {
  Scratch scratch{MatchData(pcre2_match_data_create(1, nullptr)), MatchContext(pcre2_match_context_create(nullptr)),
                  JitStack(pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr))};
  if (scratch.data == nullptr || scratch.context == nullptr) throw std::bad_alloc();
  pcre2_set_match_limit(scratch.context.get(), kMatchLimit);
  pcre2_set_depth_limit(scratch.context.get(), kDepthLimit);
  pcre2_set_heap_limit(scratch.context.get(), kHeapLimitKib);
  if (scratch.jit_stack != nullptr) pcre2_jit_stack_assign(scratch.context.get(), nullptr, scratch.jit_stack.get());
  return scratch;
}

// pcre2_match; where the JIT runs out of stack, the interpreter, which uses the heap, tries again.
int match_at(const pcre2_code* code, std::string_view text, size_t begin, const Scratch& scratch) {
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const auto run = [&](uint32_t options) {
    return pcre2_match(code, subject, text.size(), begin, PCRE2_NO_UTF_CHECK | options, scratch.data.get(),
                       scratch.context.get());
  };
  const int result = run(0);
  return result == PCRE2_ERROR_JIT_STACKLIMIT ? run(PCRE2_NO_JIT) : result;
}

size_t next_character(std::string_view text, size_t index) {
  ++index;
  while (index < text.size() && (static_cast<unsigned char>(text[index]) & 0xC0) == 0x80) ++index;
  return index;
}

}  // namespace

struct Regex::Compiled {
  Code8 code;
};

Result<Regex> Regex::compile_translated(const std::string& pattern) {
  const CompileContext context(pcre2_compile_context_create(nullptr));
  if (context == nullptr) throw std::bad_alloc();
  pcre2_set_max_pattern_length(context.get(), 2 * kMaxTranslatedBytes);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  int error = 0;
  PCRE2_SIZE offset = 0;
  Code8 code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options, &error, &offset,
                           context.get()));
  MOTE_REQUIRE(code != nullptr, Code::kInvalidTokenizer, "regular expression %.200s: %s at offset %zu", pattern.c_str(),
               error_text(error).c_str(), static_cast<size_t>(offset));
  (void)pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // absent on some systems: the interpreter serves
  return Regex(std::make_shared<const Compiled>(Compiled{std::move(code)}));
}

Result<Regex> Regex::compile(std::string_view pattern, RegexSyntax syntax) {
  MOTE_REQUIRE(pattern.size() <= kMaxPatternBytes, Code::kInvalidTokenizer,
               "a regular expression of %zu bytes: at most %zu are accepted", pattern.size(), kMaxPatternBytes);
  MOTE_ASSIGN(const std::string translated, translate_to_pcre2(pattern, syntax));
  return compile_translated(translated);
}

Status Regex::check_backtracking() const {
  for (const std::string_view unit : {"a", "A", "1", " ", "\n", "-", "a1", "a ", " \n", "ab", "a-", "A1 ", "_"}) {
    std::string text;
    while (text.size() < 96) text += unit;
    for (const std::string_view end : {"", "!", "a", " b"}) {
      const auto found = spans(text + std::string(end));
      if (!found.ok()) return {Code::kInvalidTokenizer, found.status().message() + " \"" + text.substr(0, 8) + "...\""};
    }
  }
  return {};
}

Result<std::vector<Span>> Regex::spans(std::string_view text) const {
  const pcre2_code* code = compiled_->code.get();
  MOTE_REQUIRE(is_valid_utf8(text), Code::kInvalidArgument, "a regular expression was given text that is no UTF-8");
  thread_local const Scratch scratch = make_scratch();
  std::vector<Span> spans;
  size_t from = 0;      // where the search goes on
  size_t last_end = 0;  // end of the last match
  bool any = false;
  while (from <= text.size()) {
    const int result = match_at(code, text, from, scratch);
    if (result == PCRE2_ERROR_NOMATCH) break;
    MOTE_REQUIRE(result >= 0, Code::kInvalidArgument, "the regular expression gives up on the text: %s",
                 error_text(result).c_str());
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(scratch.data.get());
    const size_t begin = range[0];
    const size_t end = range[1];
    MOTE_REQUIRE(begin >= last_end && begin <= end && end <= text.size(), Code::kInvalidTokenizer,
                 "the tokenizer's regular expression moves the start of its match");
    if (begin == end && any && end == last_end) {  // no empty match right behind a match
      from = next_character(text, from);
      continue;
    }
    if (begin > last_end) spans.push_back({last_end, begin, false});
    spans.push_back({begin, end, true});
    any = true;
    from = last_end = end;
  }
  if (last_end < text.size()) spans.push_back({last_end, text.size(), false});
  return spans;
}

}  // namespace mote::tokenizer
