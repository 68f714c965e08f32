#include "runner/cli/interrupts.h"

#include <signal.h>

#include <atomic>

namespace mote::cli {
namespace {

std::atomic<bool> is_interrupted{false};
std::atomic<mote_session*> interrupted_session{nullptr};

extern "C" void note_interrupt(int) {
  is_interrupted.store(true);
  mote_session_cancel(interrupted_session.load());
}

}  // namespace

Interrupts::Interrupts(Second second) {
  struct sigaction action{};
  action.sa_handler = note_interrupt;
  sigemptyset(&action.sa_mask);
  // Without SA_RESTART: a read ends.
  if (second == Second::kEndsTheProcess) action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

Interrupts::~Interrupts() { signal(SIGINT, SIG_DFL); }

bool Interrupts::happened() { return is_interrupted.load(); }
void Interrupts::clear() { is_interrupted.store(false); }

CancelOnInterrupt::CancelOnInterrupt(mote_session* session) { interrupted_session.store(session); }
CancelOnInterrupt::~CancelOnInterrupt() { interrupted_session.store(nullptr); }

}  // namespace mote::cli
