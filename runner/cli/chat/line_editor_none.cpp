// Stands in for line_editor.cpp in builds without libedit.
#include "runner/cli/chat/input.h"

namespace mote::cli {

std::unique_ptr<Input> make_line_editor(History, const std::vector<std::string>&) { return nullptr; }

}  // namespace mote::cli
