#include "runner/chat/chat_template.h"

#include <algorithm>
#include <array>

#include "runner/templates/characters.h"
#include "runner/templates/describe.h"
#include "runner/templates/interpreter.h"
#include "runner/templates/json_input.h"
#include "runner/templates/operators.h"
#include "runner/templates/search.h"
#include "runner/templates/text_methods.h"

namespace mote {
namespace {

using jinja::Arena;
using jinja::Dict;
using jinja::fail;
using jinja::Interpreter;
using jinja::List;
using jinja::Text;
using jinja::Value;

// Names that a message's reasoning is passed under; templates read the first.
constexpr std::array kReasoningFields = {"reasoning_content", "thinking", "reasoning"};
constexpr std::string_view kContinueTag = "CONTINUE_FINAL_MESSAGE_TAG ";
constexpr std::string_view kStrippedTag = "CONTINUE_FINAL_MESSAGE_TAG";

bool is_word(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == '_' || c == '-' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  });
}

void set_text(Interpreter& interpreter, const char* name, const std::optional<std::string>& text) {
  if (text.has_value()) interpreter.set_variable(name, Value::of(copy_text(interpreter.arena(), *text)));
}

Value read(Interpreter& interpreter, const char* name, std::string_view json, bool is_marked) {
  if (json.empty()) return Value::none();
  try {
    return read_json(interpreter, json, is_marked);
  } catch (const jinja::Error& error) { fail(std::string(name) + ": " + error.message); }
}

// Renders one conversation.
class Rendering {
 public:
  Rendering(const TemplateInput& input, std::string_view source) : input_(input), source_(source) {}

  void prepare(Interpreter& interpreter) {
    Value messages = read(interpreter, "messages", input_.messages, true);
    if (!messages.is(jinja::Kind::kList)) fail("messages: must be a JSON list of objects");
    for (size_t i = 0; i < messages.list->size; ++i)
      messages.list->items[i] = prepare_message(interpreter, messages.list->items[i]);
    if (!input_.continue_field.empty()) add_continue_tag(interpreter, *messages.list);
    interpreter.set_variable("messages", messages);
    interpreter.set_variable("tools", read(interpreter, "tools", input_.tools, true));
    interpreter.set_variable("documents", read(interpreter, "documents", input_.documents, true));
    interpreter.set_variable("add_generation_prompt", Value::of(input_.add_generation_prompt));
    set_text(interpreter, "bos_token", input_.special_tokens.bos_token);
    set_text(interpreter, "eos_token", input_.special_tokens.eos_token);
    const Value variables = read(interpreter, "variables", input_.variables, false);
    if (variables.is_none()) return;
    if (!variables.is(jinja::Kind::kDict)) fail("variables: must be a JSON object");
    for (const Dict::Entry& entry : *variables.dict) interpreter.set_variable(entry.key.string(), entry.value);
  }

  Text finish(Interpreter& interpreter, const Text& text) {
    if (input_.continue_field.empty()) return text;
    const Text wanted = strip(interpreter, final_text_, Value::none(), true, true);
    const size_t tag = text.view().rfind(kStrippedTag);
    if (text.view().find(wanted.view()) == std::string_view::npos || tag == std::string_view::npos) {
      fail(
          "continue_final_message is set but the final message does not appear in the chat after applying the chat "
          "template! "
          "This can happen if the chat template deletes portions of the final message. Please verify the chat template "
          "and "
          "final message in your chat to ensure they are compatible.Final message to continue: " +
          std::string(wanted.view()) + "\nRendered chat:\n" + std::string(text.view()));
    }
    const Text kept = text.part(0, tag);
    if (text.view().substr(tag).starts_with(kContinueTag)) return kept;
    return strip(interpreter, kept, Value::none(), false, true);
  }

 private:
  static Value prepare_message(Interpreter& interpreter, const Value& message) {
    if (!message.is(jinja::Kind::kDict)) {
      fail("Chat messages should be dicts, dataclasses or pydantic models, but got " +
           repr_string(interpreter, message) + ".");
    }
    Arena& arena = interpreter.arena();
    if (const Value* role = message.dict->find("role"); role != nullptr && role->is_text() && is_word(role->string())) {
      message.dict->set(arena, Value::of("role"), Value::of(Text(role->string())));
    }
    const Value* reasoning = nullptr;
    for (const char* field : kReasoningFields) {
      const Value* found = message.dict->find(std::string_view(field));
      if (reasoning == nullptr && found != nullptr && !found->is_none()) reasoning = found;
    }
    if (reasoning == nullptr) return message;
    Dict* aliased = make_dict(arena);
    const Value kept = *reasoning;
    aliased->set(arena, Value::of("thinking"), kept);
    for (const Dict::Entry& entry : *message.dict) aliased->set(arena, entry.key, entry.value);
    aliased->set(arena, Value::of("reasoning_content"), kept);
    return Value::of(aliased);
  }

  // The text with the tag behind it, by which the place is found again where the prompt ends.
  static Value tagged(Interpreter& interpreter, const Value& text) {
    if (!text.is_text()) MOTE_JINJA_FAIL("unsupported operand type(s) for +: '%s' and 'str'", type_name(text));
    return Value::of(concatenate(interpreter, text.text(), Text(kContinueTag)));
  }

  void add_continue_tag(Interpreter& interpreter, const List& messages) {
    const std::string field(input_.continue_field);
    if (messages.size == 0) fail("continue_final_message is set but the conversation is empty!");
    Dict& last = *messages.items[messages.size - 1].dict;
    const Value* found = last.find(field);
    if (found == nullptr || found->is_none()) {
      fail("continue_final_message is set but the final message has no \"" + field + "\" to continue!");
    }
    const Value content = *found;
    std::vector<std::string> fields{field};
    if (std::find(kReasoningFields.begin(), kReasoningFields.end(), field) != kReasoningFields.end()) {
      fields.clear();
      for (const char* name : kReasoningFields) {
        const Value* other = last.find(std::string_view(name));
        if (other != nullptr && equal(interpreter.budget(), *other, content)) fields.emplace_back(name);
      }
    }
    const bool is_read = std::any_of(fields.begin(), fields.end(),
                                     [&](const std::string& name) { return source_.find(name) != source_.npos; });
    if (!is_read) {
      fail("continue_final_message is set to \"" + field + "\" but this is not an accepted field in the chat_template");
    }
    if (content.is(jinja::Kind::kList)) return tag_last_block(interpreter, *content.list);
    for (const std::string& name : fields) {
      const Value* value = last.find(name);
      last.set(interpreter.arena(), Value::of(copy_text(interpreter.arena(), name)), tagged(interpreter, *value));
    }
    final_text_ = content.text();
  }

  void tag_last_block(Interpreter& interpreter, const List& blocks) {
    for (size_t i = blocks.size; i > 0; --i) {
      const Value& block = blocks.items[i - 1];
      if (!block.is(jinja::Kind::kDict)) continue;
      const Value* text = block.dict->find("text");
      if (text == nullptr) continue;
      const Value tagged_text = tagged(interpreter, *text);
      final_text_ = text->text();
      block.dict->set(interpreter.arena(), Value::of("text"), tagged_text);
      return;
    }
    fail("continue_final_message is set but we could not find any text to continue in the final message!");
  }

  const TemplateInput& input_;
  std::string_view source_;
  Text final_text_;
};

}  // namespace

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::parse(std::string_view source) {
  MOTE_ASSIGN(std::shared_ptr<const jinja::Template> parsed, jinja::Template::parse(source));
  return std::shared_ptr<const ChatTemplate>(new ChatTemplate(std::move(parsed)));
}

Result<Prompt> ChatTemplate::render(const TemplateInput& input, const jinja::RenderOptions& options) const {
  Rendering rendering(input, template_->source());
  return template_->render_with(
      [&](Interpreter& interpreter) { rendering.prepare(interpreter); },
      [&](Interpreter& interpreter, const Text& text) { return rendering.finish(interpreter, text); }, options);
}

const TemplateHabits& ChatTemplate::habits() const {
  habits_once_.call([&] { habits_ = habits_of(*this); });
  return habits_;
}

Result<SpecialTokens> special_tokens_of(const Model& model) {
  SpecialTokens tokens;
  MOTE_ASSIGN(const Tokenizer* tokenizer, model.tokenizer());
  if (tokenizer == nullptr) return tokens;
  if (model.bos_token_id() >= 0) tokens.bos_token = tokenizer->decode({model.bos_token_id()}, false);
  if (!model.eos_token_ids().empty()) tokens.eos_token = tokenizer->decode({model.eos_token_ids()[0]}, false);
  return tokens;
}

Result<std::shared_ptr<const ChatTemplate>> chat_template_of(const Model& model) {
  MOTE_REQUIRE(!model.chat_template().empty(), Code::kInvalidArgument,
               "%s has no chat template: give a prompt instead of messages", model.path().c_str());
  return model.derived<ChatTemplate>([&]() -> Result<std::shared_ptr<const ChatTemplate>> {
    auto parsed = ChatTemplate::parse(model.chat_template());
    if (!parsed.ok())
      return Status(parsed.status().code(), "its chat template is not valid: " + parsed.status().message());
    return parsed;
  });
}

Result<std::vector<int32_t>> encode_prompt(const Tokenizer& tokenizer, const Prompt& prompt) {
  std::vector<TextRange> plain;
  plain.reserve(prompt.marked.size());
  for (const jinja::Span& span : prompt.marked) plain.push_back({span.begin, span.end});
  return tokenizer.encode(prompt.text, {.add_special = false, .parse_special = true, .plain = plain});
}

}  // namespace mote
