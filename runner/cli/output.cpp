#include "runner/cli/output.h"

#include <cerrno>
#include <cstring>

#include "runner/cli/system.h"
#include "runner/cli/terminal.h"
#include "runner/cli/verbs.h"

namespace mote::cli {
namespace {

int first_error = 0;  // of standard output

}  // namespace

bool write_now(std::string_view text, FILE* stream) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size() && std::fflush(stream) == 0;
  if (!written && stream == stdout && first_error == 0) first_error = errno;
  return written;
}

int finish_output(int status) {
  if (first_error == 0 && std::ferror(stdout) != 0) {
    // What was printed piece by piece: the system says again why nothing can be written.
    std::clearerr(stdout);
    if (write_now("\n")) first_error = EIO;
  }
  if (first_error == 0 && std::fflush(stdout) != 0) first_error = errno;
  if (first_error == 0) return status;
  if (is_closed_pipe(first_error)) return kExitClosedPipe;
  std::fprintf(stderr, "%s standard output cannot be written: %s\n", red("error:", stderr).c_str(),
               std::strerror(first_error));
  return kExitOutput;
}

}  // namespace mote::cli
