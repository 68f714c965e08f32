// What gives replies: the model, or in tests a script.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runner/cli/chat/conversation.h"
#include "runner/cli/chat/settings.h"
#include "runner/cli/statistics.h"

namespace mote::cli {

struct Reply {
  Json message;             // as far as it came; null: nothing came
  bool is_whole = false;    // it was not broken off
  bool is_stopped = false;  // by Ctrl-C
  std::string error;        // why it could not be given, or not whole; "": no error
  ReplyStatistics statistics;
};

using Show = std::function<void(const mote_chat_event&)>;

class Responder {
 public:
  virtual ~Responder() = default;

  // Shows the parts of a reply as they come. A reply that fails is told in `error`, not thrown.
  virtual Reply respond(const Conversation& conversation, const Settings& settings, const Show& show) = 0;
  // Errors: InputError naming the option that cannot be.
  virtual void validate(const Settings& settings) = 0;
  virtual std::vector<Settings::Line> lines(const Settings& settings) const = 0;
  // Goes on in this one of the file's targets, unless that is empty. Returns the one that replies, and why it is that
  // one. Errors: InputError naming those that there are.
  virtual std::string move_to(const std::string& backend) = 0;
  // Whether the chat template may read a variable of this name.
  virtual bool reads_variable(const std::string& name) const = 0;
};

}  // namespace mote::cli
