// How `run` makes text of a prompt, and what it shows of it.
#pragma once

#include <string>

#include "runner/cli/chat/conversation.h"
#include "runner/cli/chat/screen.h"
#include "runner/cli/handles.h"
#include "runner/cli/statistics.h"

namespace mote::cli {

struct Answer {
  std::string text;
  std::string reasoning;
  Json tool_calls;  // null: none
  ReplyStatistics statistics;
  int32_t last_id = -1;  // of a continuation: the token that nothing has computed yet
};

// Goes on with a text, behind what the session has. Errors: InputError; an empty prompt in an empty session is one.
Answer continue_text(const Session& session, const std::string& prompt, const Options& options, Screen* screen);

// Replies to a message with the file's chat template. `conversation` has what stands before it.
Answer answer_question(const Model& model, const std::string& path, const Session& session, Conversation conversation,
                       const std::string& question, const Options& options, Screen* screen);

// An answer as one line of JSON.
std::string answer_json(const std::string& prompt, const Answer& answer);

}  // namespace mote::cli
