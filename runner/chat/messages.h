// Messages as a chat template takes them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "runner/chat/template_habits.h"

namespace mote {

inline constexpr size_t kMaxMessageDepth = 64;  // as templates read

// The messages as a JSON list, in the form that a template of these habits takes: parts of text joined where it knows
// no parts, the arguments of calls as objects also where they are the text of one, null as the content of a reply as
// "", the name of a result's tool from its call, and the role developer as system where it knows only that. Errors:
// kInvalidArgument naming the field: a part that is no text, arguments that are no object.
Result<std::string> template_messages(std::span<const JsonTree> messages, const TemplateHabits& habits);

// Gives each call without an id one that no call of the messages has.
class CallIds {
 public:
  explicit CallIds(std::span<const JsonTree> messages);
  // Of the index-th call of a reply. Valid until the next call.
  const std::string& of(size_t index);
  std::span<const std::string> all() const { return ids_; }

 private:
  std::vector<std::string> taken_;
  size_t num_calls_ = 0;
  std::vector<std::string> ids_;
};

// The last message with what a reply adds to the field that it went on with.
JsonTree continued(JsonTree message, const std::string& field, JsonTree reply);

// The member of an object, which it gets if it has none.
JsonTree& member(JsonTree& object, std::string_view name);
JsonTree json_text(std::string text);
// Of a text, as much as an error message shows.
std::string beginning(std::string_view text);
// "" for anything but a string.
std::string_view text_of(const JsonTree* value);

}  // namespace mote
