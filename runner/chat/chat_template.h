// A model's chat template: messages to the prompt that the model was trained on, as transformers' apply_chat_template
// makes it. Source: transformers utils/chat_template_utils.py render_jinja_template
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/once.h"
#include "base/status.h"
#include "runner/chat/template_habits.h"
#include "runner/model/model.h"
#include "runner/templates/template.h"
#include "tokenizer/tokenizer.h"

namespace mote {

// As text, undefined in the template where there is none, as in transformers.
struct SpecialTokens {
  std::optional<std::string> bos_token{};
  std::optional<std::string> eos_token{};
};
// Errors: kInvalidTokenizer.
Result<SpecialTokens> special_tokens_of(const Model& model);

// What a template renders: JSON texts. Empty: not given, which templates see as none.
struct TemplateInput {
  std::string_view messages;     // a list of objects
  std::string_view tools;        // a list of objects
  std::string_view documents;    // a list of objects
  std::string_view variables;    // an object: further variables, such as enable_thinking
  SpecialTokens special_tokens;  // which `variables` may name otherwise
  bool add_generation_prompt = false;
  std::string_view continue_field;  // the field of the last message that the model is to go on with; empty: none
};

// A prompt, and which of its bytes came from messages, tools or documents: there a special token's spelling is text.
using Prompt = jinja::Rendered;

// Immutable; may be used from any number of threads.
class ChatTemplate {
 public:
  // Errors: kInvalidTemplate with the message that jinja2 has for it.
  static Result<std::shared_ptr<const ChatTemplate>> parse(std::string_view source);

  // The roles of messages count as the template's own text if they are words: templates make control tokens of them.
  // Errors: kInvalidTemplate with the message of jinja2 or transformers, or saying which budget is spent.
  Result<Prompt> render(const TemplateInput& input, const jinja::RenderOptions& options = {}) const;

  // Cost: the first call renders a few messages.
  const TemplateHabits& habits() const;
  std::string_view source() const { return template_->source(); }

 private:
  explicit ChatTemplate(std::shared_ptr<const jinja::Template> parsed) : template_(std::move(parsed)) {}

  std::shared_ptr<const jinja::Template> template_;
  mutable Once habits_once_;
  mutable TemplateHabits habits_;
};

// A model's own, parsed when it is first asked for. Errors: kInvalidArgument if the file has none, kInvalidTemplate.
Result<std::shared_ptr<const ChatTemplate>> chat_template_of(const Model& model);

// The ids of a prompt: those of its text with special tokens, except that none is found where the text came from the
// conversation. Equal to encoding the text as it is when the conversation spells no special token.
Result<std::vector<int32_t>> encode_prompt(const Tokenizer& tokenizer, const Prompt& prompt);

}  // namespace mote
