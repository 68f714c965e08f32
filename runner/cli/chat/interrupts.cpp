#include "runner/cli/chat/interrupts.h"

#include <signal.h>

#include <atomic>

namespace mote::cli {
namespace {

std::atomic<bool> is_interrupted{false};
std::atomic<mote_session*> replying_session{nullptr};

extern "C" void note_interrupt(int) {
  is_interrupted.store(true);
  mote_session_cancel(replying_session.load());
}

}  // namespace

Interrupts::Interrupts() {
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);  // without SA_RESTART: a read ends
}

Interrupts::~Interrupts() { signal(SIGINT, SIG_DFL); }

bool Interrupts::happened() { return is_interrupted.load(); }
void Interrupts::clear() { is_interrupted.store(false); }

CancelReply::CancelReply(mote_session* session) { replying_session.store(session); }
CancelReply::~CancelReply() { replying_session.store(nullptr); }

}  // namespace mote::cli
