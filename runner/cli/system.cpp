#include "runner/cli/system.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runner/cli/interrupts.h"

namespace mote::cli {

const char* const kEndKey = "Ctrl-D";

void prepare_terminal() {}

std::vector<std::string> command_line(int argc, char** argv) { return {argv, argv + argc}; }

bool is_terminal(FILE* stream) { return isatty(fileno(stream)) != 0; }

bool is_input_terminal() { return isatty(STDIN_FILENO) != 0; }

size_t terminal_columns(FILE* stream) {
  winsize size{};
  return is_terminal(stream) && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

InputBytes read_input(int descriptor, std::span<char> to) {
  while (true) {
    const ssize_t count = ::read(descriptor, to.data(), to.size());
    if (count >= 0 || errno != EINTR) return {static_cast<size_t>(count > 0 ? count : 0), false};
    if (Interrupts::happened()) return {0, true};
  }
}

void end_with_closed_pipes() { ::signal(SIGPIPE, SIG_DFL); }

bool is_closed_pipe(int error) { return error == EPIPE; }

std::string set_process_priority(bool is_high) {
  return setpriority(PRIO_PROCESS, 0, is_high ? -8 : 10) == 0 ? "" : std::strerror(errno);
}

std::string state_folder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/mote";
  const char* home = std::getenv("HOME");
  return home == nullptr || *home == '\0' ? "" : std::string(home) + "/.local/state/mote";
}

}  // namespace mote::cli
