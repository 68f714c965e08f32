// What the command asks of the system.
#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace mote::cli {

// The key that ends the input of a terminal.
extern const char* const kEndKey;

// To be called first. Bytes arrive as they are sent, and terminals take UTF-8 and escape sequences.
void prepare_terminal();
// The words of the command line, the program's name first, as UTF-8.
std::vector<std::string> command_line(int argc, char** argv);

bool is_terminal(FILE* stream);
bool is_input_terminal();               // standard input
size_t terminal_columns(FILE* stream);  // 0: it is no terminal, or does not tell

struct InputBytes {
  size_t count = 0;  // 0: the end, or an interrupt
  bool is_interrupted = false;
};
// Waits for some bytes. A SIGINT that Interrupts notes ends the wait.
InputBytes read_input(int descriptor, std::span<char> to);
// All of standard input, until its end. Interrupts end the process.
std::string read_standard_input();

// A reader that has gone ends the process as it does elsewhere, also where the parent ignores SIGPIPE, as Python does.
void end_with_closed_pipes();
// Whether errno says that nobody reads what was written.
bool is_closed_pipe(int error);

// What stands for "low" or "high" among processes. Returns: why the system refuses; empty: it does not.
std::string set_process_priority(bool is_high);
// The folder for what the command keeps from one time to the next; empty: there is none.
std::string state_folder();

}  // namespace mote::cli
