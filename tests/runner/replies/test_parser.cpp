#include <gtest/gtest.h>

#include "runner/replies/parser.h"

namespace mote {
namespace {

std::unique_ptr<ReplyParser> parser_of(std::string_view format, std::string_view prompt = {},
                                       std::string_view tools = {}) {
  ReplyOptions options;
  options.format = format;
  options.prompt = prompt;
  options.tools = tools;
  auto made = ReplyParser::make(options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(*made);
}

std::string in_pieces(std::string_view format, std::string_view text, size_t size, std::string_view prompt) {
  const auto parser = parser_of(format, prompt);
  std::vector<ReplyEvent> events;
  for (size_t i = 0; i < text.size(); i += size) EXPECT_TRUE(parser->push(text.substr(i, size), events).ok());
  parser->finish(events);
  return parser->message();
}

std::string message(std::string_view format, std::string_view text, std::string_view prompt = {}) {
  std::string whole = in_pieces(format, text, text.size() + 1, prompt);
  for (const size_t size : {1, 2, 7}) EXPECT_EQ(in_pieces(format, text, size, prompt), whole) << text;
  constexpr std::string_view kRole = R"({"role": "assistant", "content": )";
  EXPECT_TRUE(whole.starts_with(kRole));
  return whole.substr(kRole.size());
}

std::string shown(const std::vector<ReplyEvent>& events) {
  static constexpr const char* kNames[] = {"none", "text", "reasoning", "begin", "arguments", "end", "discarded"};
  std::string text;
  for (const ReplyEvent& event : events)
    text += std::string(kNames[static_cast<int>(event.kind)]) + std::to_string(event.index) + "(" + event.text + ") ";
  return text;
}

std::string events_of(std::string_view format, const std::vector<std::string>& pieces) {
  const auto parser = parser_of(format);
  std::string text;
  for (const std::string& piece : pieces) {
    std::vector<ReplyEvent> events;
    EXPECT_TRUE(parser->push(piece, events).ok());
    text += shown(events) + "| ";
  }
  std::vector<ReplyEvent> events;
  parser->finish(events);
  return text + shown(events);
}

constexpr std::string_view kCall = R"(<tool_call>
{"name": "f", "arguments": {"a": [1, {"b": "</tool_call>"}]}}
</tool_call>)";
constexpr std::string_view kCallJson =
    R"([{"type": "function", "function": {"name": "f", "arguments": {"a": [1, {"b": "</tool_call>"}]}}}])";

TEST(ReplyParser, splits_reasoning_content_and_calls) {
  EXPECT_EQ(message("hermes", "<think>\nR\n</think>\n\nHi\n" + std::string(kCall)),
            R"("Hi", "reasoning_content": "R", "tool_calls": )" + std::string(kCallJson) + "}");
  EXPECT_EQ(message("hermes", "R\n</think>\n\nHi", "<|im_start|>assistant\n<think>\n"),
            R"("Hi", "reasoning_content": "R"})");
  EXPECT_EQ(message("hermes", "\n\nHi", "<think>\n\n</think>"), R"("Hi"})");
}

TEST(ReplyParser, marks_within_content_are_text) {
  EXPECT_EQ(message("hermes", "Write <think> and </think>."), R"("Write <think> and </think>."})");
  EXPECT_EQ(message("hermes", "a <tool_cal l> <tool_call"), R"("a <tool_cal l> <tool_call"})");
  EXPECT_EQ(message("text", "<think>x</think> [TOOL_CALLS]"), R"("<think>x</think> [TOOL_CALLS]"})");
}

TEST(ReplyParser, what_is_no_call_is_content_as_it_was_written) {
  for (const char* text :
       {"<tool_call></tool_call>", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": }}\n</tool_call>",
        "<tool_call>{\"name\": \"f\"}", "\n<tool_call> {\"name\": \"f\", \"arguments\": {}} x</tool_call>",
        "<tool_call>{\"arguments\": {}}</tool_call>", "<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>",
        "<tool_call>{\"name\": \"a b\", \"arguments\": {}}</tool_call>", "<tool_call>{\"name\": 1}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"name\": \"g\"}</tool_call>", "<tool_call>{}</tool_call>"}) {
    const auto parser = parser_of("hermes");
    std::vector<ReplyEvent> events;
    ASSERT_TRUE(parser->push(text, events).ok());
    parser->finish(events);
    std::string content;
    for (const ReplyEvent& event : events) content += event.kind == ReplyEventKind::kContent ? event.text : "";
    EXPECT_EQ(content, text);
    EXPECT_EQ(message("hermes", text).find("tool_calls"), std::string::npos) << text;
  }
}

TEST(ReplyParser, a_malformed_call_does_not_hide_the_next) {
  EXPECT_EQ(message("hermes", "<tool_call> no <tool_call>{\"name\": \"g\"}</tool_call>"),
            R"("<tool_call> no ", "tool_calls": [{"type": "function", "function": {"name": "g", "arguments": {}}}]})");
  EXPECT_EQ(message("hermes", "<tool_call><tool_call>{\"name\": \"g\"}</tool_call>"),
            R"("<tool_call>", "tool_calls": [{"type": "function", "function": {"name": "g", "arguments": {}}}]})");
}

TEST(ReplyParser, arguments_stream_as_they_are_written) {
  EXPECT_EQ(events_of("hermes", {"Hi <to", "ol_call>{\"name\": \"f\", \"argum", "ents\": {\"a\": \"x", "y\"}}\n</tool",
                                 "_call>"}),
            "text0(Hi ) | | begin0(f) arguments0({\"a\": \"x) | arguments0(y\"}) | end0() | ");
  EXPECT_EQ(events_of("hermes", {"<tool_call>{\"arguments\": {}, \"name\": \"f\"", "}</tool_call>"}),
            "| begin0(f) arguments0({}) end0() | ");
  EXPECT_EQ(events_of("glm", {"<tool_call>f\n<arg_key>a</arg_key><arg_value>1", "2</arg_value></tool_call>"}),
            "begin0(f) | arguments0({\"a\": 12}) end0() | ");
}

TEST(ReplyParser, a_call_that_turns_out_malformed_is_discarded) {
  EXPECT_EQ(
      events_of("hermes", {"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": ", "x"}),
      "begin0(f) arguments0({\"a\": ) | discarded0() text0(<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": x) | ");
  EXPECT_EQ(events_of("hermes", {"<tool_call>{\"name\": \"f\", \"arguments\": {"}),
            "begin0(f) arguments0({) | discarded0() text0(<tool_call>{\"name\": \"f\", \"arguments\": {) ");
}

TEST(ReplyParser, text_is_held_back_only_while_it_may_become_a_mark) {
  EXPECT_EQ(events_of("hermes", {"a", "<", "b", "<to", "x", "\n", "c", "\n"}),
            "text0(a) | | text0(<b) | | text0(<tox) | | text0(\nc) | | text0(\n) ");
  EXPECT_EQ(events_of("llama-3", {"{", "\"name\": \"B\", \"age\"", ": 3}"}),
            "| | text0({\"name\": \"B\", \"age\": 3}) | ");
}

TEST(ReplyParser, characters_are_whole_and_ill_formed_bytes_replaced) {
  EXPECT_EQ(events_of("hermes", {"\xC3", "\xA9", "\xFF", "<\xE4\xBD", "\xA0", "\xE2\x82"}),
            "| text0(\xC3\xA9) | text0(\xEF\xBF\xBD) | | text0(<\xE4\xBD\xA0) | | text0(\xEF\xBF\xBD) ");
}

TEST(ReplyParser, strings_of_the_tools_stay_strings) {
  constexpr std::string_view kTools =
      R"([{"function": {"name": "f", "parameters": {"properties": {"a": {"type": ["string", "null"]}, "b": {"type": "integer"},
    "c": {"enum": ["1"]}}}}}, {"name": 3}, 4])";
  const auto parser = parser_of("qwen3-coder", {}, kTools);
  std::vector<ReplyEvent> events;
  ASSERT_TRUE(
      parser
          ->push(
              "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n1\n</"
              "parameter>\n<parameter=c>\n1\n</parameter>\n"
              "<parameter=d>\n{'x': None}\n</parameter>\n<parameter=e>\n x\n\n</parameter>\n</function>\n</tool_call>",
              events)
          .ok());
  EXPECT_NE(parser->message().find(R"({"a": "1", "b": 1, "c": "1", "d": {"x": null}, "e": " x\n"})"), std::string::npos)
      << parser->message();
}

TEST(ReplyParser, names_and_ids_are_read_as_formats_write_them) {
  EXPECT_EQ(
      message("kimi-k2",
              "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:3<|tool_call_argument_begin|>{}<|tool_call_"
              "end|><|tool_calls_section_end|>"),
      R"("", "tool_calls": [{"type": "function", "id": "functions.f:3", "function": {"name": "f", "arguments": {}}}]})");
  EXPECT_EQ(
      message("mistral", "[TOOL_CALLS]f[CALL_ID]abc[ARGS]{\"a\": 1}[TOOL_CALLS]g[ARGS]{}"),
      R"("", "tool_calls": [{"type": "function", "id": "abc", "function": {"name": "f", "arguments": {"a": 1}}}, )"
      R"({"type": "function", "function": {"name": "g", "arguments": {}}}]})");
  EXPECT_EQ(
      message("llama-3", "<|python_tag|>brave_search.call(query=\"x\")<|eom_id|>"),
      R"("", "tool_calls": [{"type": "function", "function": {"name": "brave_search", "arguments": {"query": "x"}}}]})");
}

TEST(ReplyParser, channels_are_told_apart) {
  constexpr std::string_view kReply =
      "<|channel|>analysis<|message|>R<|end|><|start|>assistant<|channel|>commentary<|message|>C<|end|>"
      "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>";
  EXPECT_EQ(
      message("gpt-oss", kReply, "<|start|>assistant"),
      R"("C", "reasoning_content": "R", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}]})");
  EXPECT_EQ(message("gpt-oss", "Hello"), R"("Hello"})");
}

TEST(ReplyParser, the_end_of_the_turn_is_dropped_at_the_end_only) {
  EXPECT_EQ(message("hermes", "Hi\n<|im_end|>\n"), R"("Hi"})");
  EXPECT_EQ(message("hermes", "Hi<|im_end|> there"), R"("Hi<|im_end|> there"})");
}

TEST(ReplyParser, deep_and_long_input_is_taken) {
  const std::string deep = "<tool_call>{\"name\": \"f\", \"arguments\": " + std::string(100000, '[');
  EXPECT_NE(in_pieces("hermes", deep, 4096, {}).find("[[[["), std::string::npos);
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "<tool_call>";
  EXPECT_EQ(in_pieces("hermes", many, 4096, {}), R"({"role": "assistant", "content": ")" + many + "\"}");
}

TEST(ReplyParser, errors_name_what_is_wrong) {
  ReplyOptions options;
  options.format = "qwen";
  EXPECT_EQ(ReplyParser::make(options).status().code(), Code::kInvalidArgument);
  EXPECT_NE(ReplyParser::make(options).status().message().find("format = \"qwen\": must be one of gpt-oss, "),
            std::string::npos);
  options.format = "hermes";
  options.tools = "{}";
  EXPECT_EQ(ReplyParser::make(options).status().message(), "tools: must be a JSON list of tool schemas");
  const auto parser = parser_of("hermes");
  std::vector<ReplyEvent> events;
  EXPECT_FALSE(parser->push(std::string(ReplyParser::kMaxBytes + 1, 'x'), events).ok());
  parser->finish(events);
  parser->finish(events);
  EXPECT_EQ(parser->push("x", events).message(), "the reply is finished: open another one for more text");
  EXPECT_TRUE(events.empty());
}

TEST(ReplyParser, reasoning_that_the_prompt_ends_in_goes_on) {
  ReplyOptions options;
  options.format = "hermes";
  options.is_reasoning = true;
  const auto parser = std::move(*ReplyParser::make(options));
  std::vector<ReplyEvent> events;
  ASSERT_TRUE(parser->push("and so</think>Yes", events).ok());
  parser->finish(events);
  EXPECT_EQ(parser->message(), R"({"role": "assistant", "content": "Yes", "reasoning_content": "and so"})");
}

TEST(ReplyParser, calls_without_an_id_get_one_that_is_given) {
  const auto parser = parser_of("hermes");
  std::vector<ReplyEvent> events;
  ASSERT_TRUE(parser->push(kCall, events).ok());
  const std::string ids[] = {"one"};
  EXPECT_NE(parser->message(ids).find(R"("id": "one")"), std::string::npos);
  EXPECT_EQ(parser->message().find("\"id\""), std::string::npos);
}

}  // namespace
}  // namespace mote
