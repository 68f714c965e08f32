// In which form a chat template takes what messages hold, found out by rendering some.
#pragma once

namespace mote {

class ChatTemplate;

struct TemplateHabits {
  bool takes_parts = false;           // a content that is a list of parts
  bool needs_parts = false;           // and none that is a text
  bool takes_no_content = false;      // null as the content of a reply that calls tools
  bool takes_text_arguments = false;  // the arguments of calls as the text of their JSON, and not as an object
  bool knows_developer = false;       // the role of that name
};

TemplateHabits habits_of(const ChatTemplate& chat_template);

}  // namespace mote
