#include "runner/chat/template_habits.h"

#include <string>
#include <string_view>

#include "runner/chat/chat_template.h"

namespace mote {
namespace {

constexpr std::string_view kNeedle = "needle";
constexpr std::string_view kText = R"([{"role": "user", "content": "needle"}])";
constexpr std::string_view kParts = R"([{"role": "user", "content": [{"type": "text", "text": "needle"}]}])";

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

std::string rendered(const ChatTemplate& chat_template, std::string_view messages) {
  TemplateInput input;
  input.messages = messages;
  input.special_tokens = {"<s>", "</s>"};
  auto prompt = chat_template.render(input);
  return prompt.ok() ? std::move(prompt->text) : "";
}

// What the template makes of a user's message and a reply that calls a tool; "": it refuses them.
std::string with_call(const ChatTemplate& chat_template, std::string_view content, std::string_view arguments) {
  return rendered(chat_template,
                  R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": )" + std::string(content) +
                      R"(, "tool_calls": [{"type": "function", "id": "call00000", "function": {"name": "f", )" +
                      R"("arguments": )" + std::string(arguments) + "}}]}]");
}

}  // namespace

TemplateHabits habits_of(const ChatTemplate& chat_template) {
  TemplateHabits habits;
  // A list that is written out as a whole shows its keys.
  const std::string parts = rendered(chat_template, kParts);
  habits.takes_parts = contains(parts, kNeedle) && !contains(parts, "'type'") && !contains(parts, "\"type\"");
  habits.needs_parts = habits.takes_parts && !contains(rendered(chat_template, kText), kNeedle);
  const std::string object = R"({"x": "needle"})", text = R"("{\"x\": \"needle\"}")";
  habits.takes_text_arguments =
      with_call(chat_template, "\"\"", object).empty() && !with_call(chat_template, "\"\"", text).empty();
  const std::string no_content = with_call(chat_template, "null", habits.takes_text_arguments ? text : object);
  habits.takes_no_content = !no_content.empty() && !contains(no_content, "None");
  habits.knows_developer = contains(chat_template.source(), "developer");
  return habits;
}

}  // namespace mote
