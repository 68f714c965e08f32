// Conversations as JSON files.
#pragma once

#include <string>
#include <vector>

#include "runner/cli/chat/conversation.h"
#include "runner/cli/option_flags.h"

namespace mote::cli {

struct SavedConversation {
  Conversation conversation;
  GivenOptions options;
};

// JSON of at most 64 levels. Errors: InputError that begins with `name`.
Json parse_json(const std::string& name, const std::string& text);
enum class Pipes { kRefuse, kRead };  // named pipes, where nobody may ever write
// Errors: InputError naming the file, at most 256 MiB.
std::string read_text_file(const std::string& path, Pipes pipes = Pipes::kRefuse);
// The file appears whole or not at all. Errors: InputError naming it.
void write_text_file(const std::string& path, const std::string& text);

// A JSON list of tool schemas. Errors: InputError naming the option and the file.
Json read_tools(const std::string& path);

void save_conversation(const std::string& path, const Conversation& conversation, const GivenOptions& options);
// Reads what save_conversation writes, or a plain list of messages. Errors: InputError naming file, field and what
// would be accepted.
SavedConversation load_conversation(const std::string& path);

}  // namespace mote::cli
