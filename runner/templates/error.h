// How the engine reports what a template or its input did wrong. Thrown inside of the library only: Template catches
// it.
#pragma once

#include <string>

#include "base/status.h"

namespace mote::jinja {

struct Error {
  std::string message;  // as Python words it
};

[[noreturn]] inline void fail(std::string message) { throw Error{std::move(message)}; }

}  // namespace mote::jinja

// printf-like
#define MOTE_JINJA_FAIL(...) ::mote::jinja::fail(::mote::format(__VA_ARGS__))
