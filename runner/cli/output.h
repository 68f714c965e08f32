// Standard output, which may be a disk that is full or a pipe that nobody reads.
#pragma once

#include <cstdio>
#include <string_view>

namespace mote::cli {

// Writes and flushes. False: nothing more can be written; finish_output tells why.
bool write_now(std::string_view text, FILE* stream = stdout);

// For the end of the process: whether all that was written has arrived. Returns `status`; or, with an error on standard
// error, kExitOutput; or kExitClosedPipe without a word where nobody read on.
int finish_output(int status);

}  // namespace mote::cli
