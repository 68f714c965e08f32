// Speculative decoding with a draft model, as commands show it.
#pragma once

#include <string>

#include "runner/cli/handles.h"

namespace CLI {
class App;
}

namespace mote::cli {

// The flag --draft.
void add_draft_model(CLI::App& app, std::string& path);
// "": none.
void set_draft_model(const Session& session, const std::string& path);

}  // namespace mote::cli
