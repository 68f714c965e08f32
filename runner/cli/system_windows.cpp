#include "runner/cli/system.h"

#include <fcntl.h>
#include <io.h>
#include <windows.h>

#include <shellapi.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/windows.h"
#include "runner/cli/interrupts.h"

namespace mote::cli {
namespace {

constexpr wchar_t kEndOfInput = 0x1A;  // Ctrl-Z at the start of a line

HANDLE handle_of(int descriptor) { return reinterpret_cast<HANDLE>(::_get_osfhandle(descriptor)); }

// Of a terminal: pipes and NUL have no mode.
bool is_console(int descriptor) {
  DWORD mode = 0;
  return ::GetConsoleMode(handle_of(descriptor), &mode) != 0;
}

void take_escape_sequences(FILE* stream) {
  DWORD mode = 0;
  const HANDLE console = handle_of(::_fileno(stream));
  if (::GetConsoleMode(console, &mode) != 0) (void)::SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

// The thread that notes an interrupt may come after this one has seen its read end.
void wait_for_interrupt() {
  for (int i = 0; i < 100 && !Interrupts::happened(); ++i) ::Sleep(1);
}

// Characters, because consoles before Windows 11 lose those beyond ASCII when bytes are read.
InputBytes read_console(HANDLE console, std::span<char> to) {
  std::vector<wchar_t> units(std::min<size_t>(to.size() / 4, 8192));  // UTF-8 takes at most 3 bytes a unit
  DWORD count = 0;
  ::SetLastError(0);
  const BOOL is_read = ::ReadConsoleW(console, units.data(), static_cast<DWORD>(units.size()), &count, nullptr);
  if (count == 0 && ::GetLastError() == ERROR_OPERATION_ABORTED) {
    wait_for_interrupt();
    return {0, true};
  }
  if (is_read == 0 || count == 0 || units[0] == kEndOfInput) return {};
  const std::string bytes = windows::to_utf8({units.data(), count});
  std::copy(bytes.begin(), bytes.end(), to.begin());
  return {bytes.size(), false};
}

std::string environment(const wchar_t* name) {
  std::wstring value(::GetEnvironmentVariableW(name, nullptr, 0), L'\0');
  value.resize(::GetEnvironmentVariableW(name, value.data(), static_cast<DWORD>(value.size())));
  return windows::to_utf8(value);
}

}  // namespace

const char* const kEndKey = "Ctrl-Z and Enter";

void prepare_terminal() {
  for (FILE* stream : {stdin, stdout, stderr}) (void)::_setmode(::_fileno(stream), _O_BINARY);
  for (FILE* stream : {stdout, stderr}) take_escape_sequences(stream);
  (void)::SetConsoleOutputCP(CP_UTF8);
}

std::vector<std::string> command_line(int argc, char** argv) {
  int count = 0;
  wchar_t** words = ::CommandLineToArgvW(::GetCommandLineW(), &count);
  if (words == nullptr) return {argv, argv + argc};
  std::vector<std::string> result;
  for (int i = 0; i < count; ++i) result.push_back(windows::to_utf8(words[i]));
  ::LocalFree(words);
  return result;
}

bool is_terminal(FILE* stream) { return is_console(::_fileno(stream)); }

bool is_input_terminal() { return is_console(::_fileno(stdin)); }

size_t terminal_columns(FILE* stream) {
  CONSOLE_SCREEN_BUFFER_INFO info{};
  if (::GetConsoleScreenBufferInfo(handle_of(::_fileno(stream)), &info) == 0) return 0;
  return static_cast<size_t>(std::max(0, info.srWindow.Right - info.srWindow.Left + 1));
}

InputBytes read_input(int descriptor, std::span<char> to) {
  if (is_console(descriptor)) return read_console(handle_of(descriptor), to);
  DWORD count = 0;
  (void)::ReadFile(handle_of(descriptor), to.data(), static_cast<DWORD>(to.size()), &count, nullptr);
  return {count, false};
}

void end_with_closed_pipes() {}  // there is no such signal: writing fails

// The C library knows no error for it.
bool is_closed_pipe(int error) { return error == EPIPE || error == EINVAL; }

std::string set_process_priority(bool is_high) {
  const DWORD priority = is_high ? ABOVE_NORMAL_PRIORITY_CLASS : BELOW_NORMAL_PRIORITY_CLASS;
  return ::SetPriorityClass(::GetCurrentProcess(), priority) != 0 ? "" : windows::last_message();
}

std::string state_folder() {
  const std::string folder = environment(L"LOCALAPPDATA");
  return folder.empty() ? "" : folder + "\\mote";
}

}  // namespace mote::cli
