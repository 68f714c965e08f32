// One reply of a model to a conversation.
#pragma once

#include <string>

#include "runner/cli/chat/conversation.h"
#include "runner/cli/chat/responder.h"
#include "runner/cli/handles.h"

namespace mote::cli {

// Shows the parts of a reply as they come; Ctrl-C stops it. What goes wrong is told in Reply::error.
// path: of the model, for messages. options: of a generation.
Reply reply_of_model(const Model& model, const std::string& path, const Session& session,
                     const Conversation& conversation, const Options& options, const Show& show);

}  // namespace mote::cli
