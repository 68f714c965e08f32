// A tiny model that speaks ASCII and, where it is told to, says a script.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runner/chat/chat_turn.h"
#include "tests/runner/session/tiny_file.h"

namespace mote::test {

// Reasoning that the prompt begins where `think` is set, and tools.
inline constexpr const char* kThinkTemplate =
    "{%- if tools %}{{ '[' + tools | tojson + ']' }}{% endif %}"
    "{%- for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>"
    "{% endif %}{{ m.content }}{% for c in m.tool_calls or [] %}\n<tool_call>\n{{ c.function | tojson }}\n</tool_call>"
    "{% endfor %}{{ eos_token }}{% endfor %}"
    "{%- if add_generation_prompt %}<assistant>{% if think %}<think>\n{% endif %}{% endif %}";

inline constexpr int32_t kAsciiVocabulary = 130;

// A token for each printable character, the space and the line break; id 0 is <eos>.
inline TinyTokenizer ascii_tokenizer() {
  TinyTokenizer tokenizer;
  std::string vocabulary = R"({"type": "BPE", "vocab": {"<eos>": 0, "Ġ": 1, "Ċ": 2)";
  for (int c = 0x21; c < 0x7f; ++c) {
    const char character = static_cast<char>(c);
    const std::string escaped =
        character == '"' || character == '\\' ? std::string("\\") + character : std::string(1, character);
    vocabulary += ", \"" + escaped + "\": " + std::to_string(c - 0x21 + 3);
  }
  tokenizer.model = vocabulary + R"(}, "merges": []})";
  return tokenizer;
}

inline ProgramBuilder ascii_program(const std::string& chat_template = kThinkTemplate) {
  TinyModelOptions options;
  options.vocab_size = kAsciiVocabulary;
  ProgramBuilder builder = tiny_model(options);
  builder.program.eos_token_ids = {0};
  builder.program.max_position_embeddings = 1024;
  builder.tokenizer = ascii_tokenizer().compiled();
  builder.chat_template = chat_template;
  return builder;
}

// Makes a generation write these ids: each is pushed up where the ones before it stand, more than all that came before.
inline std::vector<SequenceBias> script_of(const std::vector<int32_t>& ids) {
  std::vector<SequenceBias> script;
  for (size_t i = 0; i < ids.size(); ++i) {
    script.push_back({{ids.begin(), ids.begin() + static_cast<ptrdiff_t>(i) + 1}, 1e6f * static_cast<float>(i + 1)});
  }
  return script;
}

class ScriptedModel {
 public:
  explicit ScriptedModel(const std::string& chat_template = kThinkTemplate, const SessionOptions& options = {})
      : file_(ascii_program(chat_template)) {
    auto opened = Model::open(file_.path());
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    model = *opened;
    place.session = session(options);
    place.window = std::make_shared<ContextWindow>();
  }

  std::shared_ptr<Session> session(const SessionOptions& options = {}) const {
    auto session = Session::open(model, options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    return *std::move(session);
  }
  std::vector<int32_t> ids(const std::string& text) const {
    return *(*model->tokenizer())->encode(text, {.add_special = false, .parse_special = true});
  }
  // Says the text and ends.
  GenerationOptions saying(const std::string& text) const {
    GenerationOptions options;
    options.sampling.sequence_bias = script_of(ids(text + "<eos>"));
    return options;
  }
  Conversation conversation(const std::string& messages, const std::string& tools = "") const {
    Conversation result(model);
    EXPECT_TRUE(result.set(ChatField::kMessages, messages).ok());
    EXPECT_TRUE(result.set(ChatField::kTools, tools).ok());
    return result;
  }

 private:
  TinyFile file_;

 public:
  std::shared_ptr<const Model> model;
  ChatPlace place;
};

// All events of a turn, one a line.
inline std::string written(ChatTurn& turn) {
  static constexpr const char* kNames[] = {"none", "content", "reasoning", "begin", "arguments", "end", "discarded"};
  std::string lines;
  ChatEventKind last = ChatEventKind::kNone;
  while (true) {
    auto event = turn.next();
    if (!event.ok()) return lines + "\nerror " + event.status().message();
    if (event->kind == ChatEventKind::kDone) return lines;
    if (event->kind == ChatEventKind::kNone) continue;
    const bool goes_on = event->kind == last && event->call_id.empty();
    if (!goes_on) lines += (lines.empty() ? "" : "\n") + std::string(kNames[static_cast<int>(event->kind)]) + " ";
    lines += event->text + (event->call_id.empty() ? "" : "#" + event->call_id);
    last = event->kind;
  }
}

}  // namespace mote::test
