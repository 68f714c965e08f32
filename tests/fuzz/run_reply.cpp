#include "tests/fuzz/run_reply.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/utf8.h"
#include "runner/replies/parser.h"

namespace mote::test {
namespace {

constexpr size_t kHeaderBytes = 3;
constexpr std::string_view kTools =
    R"([{"function": {"name": "f", "parameters": {"properties": {"a": {"type": "string"}}}}}])";

struct Outcome {
  std::string message;
  std::vector<ReplyEvent> events;  // merged
};

// Pieces of bytes, so that characters are cut too.
Result<Outcome> read(const ReplyOptions& options, std::string_view text, uint64_t seed) {
  MOTE_ASSIGN(const std::unique_ptr<ReplyParser> parser, ReplyParser::make(options));
  Outcome outcome;
  std::mt19937_64 random(seed);
  while (!text.empty()) {
    const size_t length = seed == 0 ? text.size() : std::min<size_t>(text.size(), seed == 1 ? 1 : 1 + random() % 24);
    MOTE_RETURN_IF_ERROR(parser->push(text.substr(0, length), outcome.events));
    text.remove_prefix(length);
  }
  parser->finish(outcome.events);
  outcome.message = parser->message();
  return outcome;
}

// What the events say: content, reasoning and the arguments of the calls that ended.
Status check_events(const Outcome& outcome) {
  const nlohmann::json message = nlohmann::json::parse(outcome.message, nullptr, false);
  MOTE_REQUIRE(!message.is_discarded(), Code::kInternal, "the message is no JSON: %s", outcome.message.c_str());
  std::string content;
  std::string reasoning;
  std::string arguments;
  size_t ended = 0;
  bool in_call = false;
  for (const ReplyEvent& event : outcome.events) {
    MOTE_REQUIRE(is_valid_utf8(event.text), Code::kInternal, "an event is not UTF-8");
    const bool is_inner = event.kind >= ReplyEventKind::kCallArguments;
    MOTE_REQUIRE(in_call == is_inner && (event.kind < ReplyEventKind::kCallBegin || event.index == ended),
                 Code::kInternal, "an event out of order");
    switch (event.kind) {
      case ReplyEventKind::kContent: content += event.text; break;
      case ReplyEventKind::kReasoning: reasoning += event.text; break;
      case ReplyEventKind::kCallBegin: in_call = true; break;
      case ReplyEventKind::kCallArguments: arguments += event.text; break;
      case ReplyEventKind::kCallDiscarded: in_call = false, arguments.clear(); break;
      case ReplyEventKind::kCallEnd: {
        const nlohmann::json whole = nlohmann::json::parse(arguments, nullptr, false);
        MOTE_REQUIRE(!whole.is_discarded() && message["tool_calls"][ended]["function"]["arguments"] == whole,
                     Code::kInternal, "arguments of events are not those of the message: %s", arguments.c_str());
        in_call = false;
        arguments.clear();
        ++ended;
      }
    }
  }
  MOTE_REQUIRE(!in_call && nlohmann::json(content) == message["content"], Code::kInternal,
               "events are not the message's content");
  MOTE_REQUIRE(reasoning == message.value("reasoning_content", ""), Code::kInternal,
               "events are not the message's reasoning");
  MOTE_REQUIRE(ended == message.value("tool_calls", nlohmann::json::array()).size(), Code::kInternal,
               "calls of events are not those of the message");
  return {};
}

// Text is dropped only as a mark or white space: without a mark in it, it comes out whole.
Status check_loss(std::string_view format, std::string_view text, const Outcome& outcome) {
  if (format != "text") return {};
  const nlohmann::json message = nlohmann::json::parse(outcome.message, nullptr, false);
  MOTE_REQUIRE(message["content"] == replace_invalid_utf8(text), Code::kInternal, "text was lost");
  return {};
}

// JSON texts that no double can hold are sound, but nlohmann refuses them.
bool has_huge_number(std::string_view text) {
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if ((text[i] | 0x20) == 'e' && (text[i + 1] == '+' || (text[i + 1] >= '0' && text[i + 1] <= '9'))) return true;
  }
  return text.find("\\u") != text.npos || text.size() > 100000;  // likewise lone surrogates
}

}  // namespace

Status run_reply(std::string_view input) {
  if (input.size() < kHeaderBytes) return {};
  const std::vector<std::string_view> formats = reply_format_names();
  ReplyOptions options;
  options.format = formats[static_cast<unsigned char>(input[0]) % formats.size()];
  options.prompt = (input[1] & 1) != 0 ? "<think>\n" : "";
  options.tools = (input[1] & 2) != 0 ? kTools : "";
  const auto cut = static_cast<unsigned char>(input[2]);
  input.remove_prefix(kHeaderBytes);
  MOTE_ASSIGN(const Outcome whole, read(options, input, 0));
  for (const uint64_t seed : {uint64_t{1}, uint64_t{2} + cut}) {
    MOTE_ASSIGN(const Outcome pieces, read(options, input, seed));
    MOTE_REQUIRE(pieces.message == whole.message, Code::kInternal, "%s: pieces give\n%s\nthe whole gives\n%s",
                 std::string(options.format).c_str(), pieces.message.c_str(), whole.message.c_str());
    if (!has_huge_number(input)) MOTE_RETURN_IF_ERROR(check_events(pieces));
  }
  return check_loss(options.format, input, whole);
}

const std::vector<std::string>& reply_pieces() {
  static const std::vector<std::string> pieces = [] {
    std::set<std::string> found = {"{\"name\": \"f\", \"arguments\": {\"a\": [1, \"x\"]}}",
                                   "{\"name\": \"f\", \"parameters\": {}}",
                                   "{\"a\": \"b\\n\"}",
                                   "f(a=1, b='x')",
                                   "f",
                                   "[",
                                   "]",
                                   ",",
                                   "{",
                                   "}",
                                   "\"",
                                   ":",
                                   "a",
                                   "\n",
                                   " ",
                                   "{a:<|\"|>x<|\"|>}",
                                   "functions.f:0",
                                   "analysis",
                                   "to=functions.f",
                                   "None",
                                   "1",
                                   "1.5",
                                   "\xC3\xA9",
                                   "\xF0\x9F\x98\x80",
                                   "\xFF",
                                   "\xEF\xBD\x9C",
                                   "'",
                                   "\\",
                                   "```json",
                                   "{\"arguments\": ",
                                   "\"name\"",
                                   "]<]minimax[>[<a>1]<]minimax[>[</a>"};
    for (const reply::Format& format : reply::formats()) {
      for (const auto rules : {format.reasoning, format.calls}) {
        for (const reply::Rule& rule : rules) found.insert(std::string(rule.mark));
      }
      for (const std::string_view end : format.ends) found.insert(std::string(end));
    }
    return std::vector<std::string>(found.begin(), found.end());
  }();
  return pieces;
}

const std::vector<std::string>& reply_seeds() {
  static const std::vector<std::string> seeds = [] {
    constexpr std::string_view kReplies[] = {
        "<think>\nR\n</think>\n\nHi\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"x\", \"b\": [1, {\"c\": "
        "null}]}}\n</tool_call>\n<tool_call>\n{\"name\": \"g\"}\n</tool_call>",
        "<tool_calls>[{\"name\": \"f\", \"arguments\": {\"a\": 1}, \"id\": \"c\"}, {\"name\": \"g\", \"arguments\": "
        "{}}]</tool_calls>",
        "Here are my reasoning steps:\nR\n[BEGIN FINAL RESPONSE]\nHi\n[END FINAL RESPONSE]\n<|end|>",
        "<think>R</think><response>Hi</response>",
        "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]",
        "[THINK]R[/THINK]Hi[TOOL_CALLS]f[CALL_ID]abc[ARGS]{\"a\": 1}[TOOL_CALLS]g[ARGS]{}</s>",
        "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}}]",
        "Hi functools[{\"name\": \"f\", \"arguments\": {}}]",
        "I will\nAction:\n```json\n[\n {\"tool_name\": \"f\", \"parameters\": {}}\n]```",
        "<|START_THINKING|>R<|END_THINKING|><|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"f\", "
        "\"parameters\": {}}]<|END_ACTION|>",
        "Hi<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"f\", \"arguments\": {}}<|message_sep|>\n\n",
        "{\"name\": \"f\", \"parameters\": {\"a\": 1}}; {\"name\": \"g\", \"parameters\": {}}<|eom_id|>",
        "<|python_tag|>f.call(query=\"x\", b=[None, {'a': 'b'}])",
        "Hi<function=f>{\"a\": 1}</function><function=g>{}</function>",
        "<|python_tag|>{\"code\": \"1\"}",
        "<\uFF5Ctool\u2581calls\u2581begin\uFF5C><\uFF5Ctool\u2581call\u2581begin\uFF5C>function<"
        "\uFF5Ctool\u2581sep\uFF5C>f\n```json\n{\"a\": "
        "1}\n```<\uFF5Ctool\u2581call\u2581end\uFF5C><\uFF5Ctool\u2581calls\u2581end\uFF5C>",
        "<\uFF5Ctool\u2581calls\u2581begin\uFF5C><\uFF5Ctool\u2581call\u2581begin\uFF5C>f<\uFF5Ctool\u2581sep\uFF5C>{"
        "\"a\": 1}<\uFF5Ctool\u2581call\u2581end\uFF5C><\uFF5Ctool\u2581calls\u2581end\uFF5C>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\": "
        "1}<|tool_call_end|><|tool_calls_section_end|>",
        "<|channel>thought\nR<channel|><|tool_call>call:f{a:<|\"|>x<|\"|>,b:[1,None,{c:true}]}<tool_call|>Hi",
        "<start_function_call>call:f{a:<escape>x<escape>}<end_function_call>",
        "<|channel|>analysis<|message|>R<|end|><|start|>assistant<|channel|>commentary to=functions.f "
        "<|constrain|>json<|message|>{\"a\": 1}<|call|>",
        "<|think|>R<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>id<|tool_call:name|>f<|tool_call:args|>{"
        "\"a\": 1}<|tool_call:end|><|calls|>",
        "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n{'x': "
        "None}\n</parameter>\n</function>\n</tool_call>",
        "<seed:think>R</seed:think>Hi\n<seed:tool_call>\n<function=f>\n<parameter=a>1</parameter>\n</function>\n</"
        "seed:tool_call>",
        "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n<arg_key>b</arg_key>\n<arg_value>{\"x\": "
        "[1]}</arg_value>\n</tool_call>",
        "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter "
        "name=\"a\">1</parameter>\n</invoke>\n</minimax:tool_call>",
        "<mm:think>R</mm:think>Hi]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke "
        "name=\"f\">]<]minimax[>[<a>]<]minimax[>[<item>1]<]minimax[>[</"
        "item>]<]minimax[>[<item>]<]minimax[>[<k>x]<]minimax[>[</k>"
        "]<]minimax[>[</item>]<]minimax[>[</a>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
        "<\uFF5CDSML\uFF5Ctool_calls>\n<\uFF5CDSML\uFF5Cinvoke name=\"f\">\n<\uFF5CDSML\uFF5Cparameter name=\"a\" "
        "string=\"true\">x</\uFF5CDSML\uFF5Cparameter>\n"
        "<\uFF5CDSML\uFF5Cparameter name=\"b\" "
        "string=\"false\">[1]</\uFF5CDSML\uFF5Cparameter>\n</\uFF5CDSML\uFF5Cinvoke>\n</\uFF5CDSML\uFF5Ctool_calls>",
        "<|tool_call_start|>[f(a=1, b='x'), g()]<|tool_call_end|>Hi",
        "Hi\n```tool_code\nf(a=1)\n```"};
    std::vector<std::string> all;
    for (size_t format = 0; format < reply_format_names().size(); ++format) {
      for (const std::string_view reply : kReplies)
        all.push_back(std::string(1, static_cast<char>(format)) + std::string("\0\x07", 2) + std::string(reply));
    }
    return all;
  }();
  return seeds;
}

}  // namespace mote::test
