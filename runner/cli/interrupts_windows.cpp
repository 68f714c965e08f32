// Windows calls the handler of Ctrl-C in a thread of its own.
#include <windows.h>

#include <atomic>

#include "runner/cli/interrupts.h"

namespace mote::cli {
namespace {

std::atomic<bool> is_interrupted{false};
std::atomic<bool> ends_the_process{false};  // the next one
std::atomic<bool> is_second_the_end{false};
std::atomic<mote_session*> interrupted_session{nullptr};

BOOL WINAPI note_interrupt(DWORD event) {
  if (event != CTRL_C_EVENT || ends_the_process.load()) return FALSE;  // the next handler ends the process
  ends_the_process.store(is_second_the_end.load());
  is_interrupted.store(true);
  mote_session_cancel(interrupted_session.load());
  return TRUE;
}

}  // namespace

Interrupts::Interrupts(Second second) {
  is_second_the_end.store(second == Second::kEndsTheProcess);
  ends_the_process.store(false);
  ::SetConsoleCtrlHandler(note_interrupt, TRUE);
}

Interrupts::~Interrupts() { ::SetConsoleCtrlHandler(note_interrupt, FALSE); }

bool Interrupts::happened() { return is_interrupted.load(); }
void Interrupts::clear() { is_interrupted.store(false); }

CancelOnInterrupt::CancelOnInterrupt(mote_session* session) { interrupted_session.store(session); }
CancelOnInterrupt::~CancelOnInterrupt() { interrupted_session.store(nullptr); }

}  // namespace mote::cli
