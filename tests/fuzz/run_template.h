// What the fuzz target of the template engine does with an input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace mote::test {

// A template, and after a NUL the messages as JSON (without one: a conversation of every kind of message). Parses and
// renders. The status says why the template was refused; ok means that it rendered and that what it rendered is sound.
// kInternal: it is not.
Status run_template(std::string_view input);

// Templates that use all of the language, as seeds.
const std::vector<std::string>& template_seeds();

}  // namespace mote::test
