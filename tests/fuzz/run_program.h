// What a fuzz target does with the bytes of a file: load it and, if it is not refused, run it.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"

namespace mote::test {

// map, verify, bind, prefill of two tokens and one decode step, with 64 MiB for activations and 64 MiB for states.
// The status says why the file was refused or the run stopped; ok means that it ran.
Status run_program(std::span<const std::byte> file);

}  // namespace mote::test
