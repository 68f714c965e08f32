// Sessions from sessions: forks, snapshots, files.
#include "base/parts.h"
#include "runner/session/session.h"
#include "runner/session/state/session_file.h"

namespace mote {
namespace {

template <typename T>
std::vector<T> listed(std::span<const T> values) {
  return {values.begin(), values.end()};
}

}  // namespace

Result<std::unique_ptr<Session>> Session::fork(const Engine* engine) {
  MOTE_ASSIGN(const std::shared_ptr<const SessionSnapshot> present, snapshot());
  SessionOptions options = options_;
  options.adapters.clear();  // they may have been set since
  const std::shared_ptr<const Bound> wanted = engine == nullptr ? bound_ : engine->executor->bound();
  auto opened = open_on(wanted, model_, options, engine);
  if (!opened.ok()) {
    // A device without room for one more session: the fork goes on by the CPU.
    const Status failed = opened.status();
    const bool falls_back = engine == nullptr && is_of_device(failed.code()) && wanted->target() != kCpu;
    const auto cpu = falls_back ? model_->bound_for(kCpu) : Result<std::shared_ptr<const Bound>>(failed);
    if (cpu.ok()) opened = open_on(*cpu, model_, options, nullptr);
    if (!opened.ok()) return failed;
    (*opened)->note_failure(wanted->target(), failed);
  }
  std::unique_ptr<Session> session = *std::move(opened);
  session->num_keep_ = num_keep_;
  MOTE_RETURN_IF_ERROR(session->set_adapters(adapters_));
  session->follow_with_head(head_.follows());
  if (position() > 0) MOTE_RETURN_IF_ERROR(session->adopt(*present, position()));
  return session;
}

Result<std::shared_ptr<const SessionSnapshot>> Session::snapshot() {
  auto taken = take_snapshot();
  if (taken.ok() || leave_backend(taken.status()).code() != Code::kOk) return taken;
  return take_snapshot();
}

Result<std::shared_ptr<const SessionSnapshot>> Session::take_snapshot() {
  forget_draft();
  MOTE_RETURN_IF_ERROR(require_whole());
  MOTE_RETURN_IF_ERROR(require_computed());
  MOTE_RETURN_IF_ERROR(settle_states());
  auto snapshot = std::make_shared<SessionSnapshot>();
  snapshot->bound = bound_;
  snapshot->adapters = adapters_;
  snapshot->tokens = listed(tokens());
  snapshot->states = states_.snapshot(position());
  if (has_delegate_state()) { MOTE_ASSIGN(snapshot->delegates, executor().delegates().snapshot()); }
  snapshot->head = head_.snapshot();
  snapshot->logits = position_.kept_logits();
  if (position_.has_row()) {
    MOTE_ASSIGN(const std::span<const float> logits, returned_logits());
    snapshot->logits = listed(logits);
  }
  return std::shared_ptr<const SessionSnapshot>(std::move(snapshot));
}

Status Session::adopt(const SessionSnapshot& snapshot, int64_t to) {
  MOTE_REQUIRE(&snapshot.bound->verified() == &bound_->verified(), Code::kInvalidArgument,
               "the snapshot is one of another model");
  MOTE_REQUIRE(is_same_mix(snapshot.adapters, adapters_), Code::kInvalidArgument,
               "the snapshot was computed with %s, the session has %s", text_of(snapshot.adapters).c_str(),
               text_of(adapters_).c_str());
  const auto size = static_cast<int64_t>(snapshot.tokens.size());
  MOTE_REQUIRE(to >= 0 && to <= size, Code::kInvalidArgument, "position = %lld: must be 0..%lld, the snapshot's",
               static_cast<long long>(to), static_cast<long long>(size));
  const std::span<const int32_t> ids = std::span(snapshot.tokens).first(static_cast<size_t>(to));
  if (to == 0 || snapshot.bound != bound_ || states_.adoptable(snapshot.states, to) != to) {
    reset();
    return append(ids);
  }
  std::vector<float> logits = to == size ? snapshot.logits : std::vector<float>();
  reset();
  if (has_delegate_state() && !adopt_delegates(snapshot, to)) {
    reset();
    return append(ids);
  }
  states_.adopt(snapshot.states, to);
  position_.adopt(ids, std::move(logits));
  head_.adopt(snapshot.head, to);
  return {};
}

// False: the delegates cannot take their part of the snapshot, and the tokens must be computed again.
bool Session::adopt_delegates(const SessionSnapshot& snapshot, int64_t to) {
  const Result<bool> restored = executor().delegates().restore(snapshot.delegates);
  if (!restored.ok() || !*restored) return false;
  return executor().delegates().seek(to);
}

Status Session::save(const std::string& path) {
  MOTE_REQUIRE_PART("sessions.files", Code::kInvalidArgument);
  MOTE_ASSIGN(const std::shared_ptr<const SessionSnapshot> present, snapshot());
  return write_session_file(path, *model_, *present, states_);
}

Status Session::restore(const std::string& path) {
  MOTE_REQUIRE_PART("sessions.files", Code::kInvalidArgument);
  MOTE_ASSIGN(SavedSession saved, read_session_file(path, *model_, states_, adapters_, context_length()));
  SessionSnapshot snapshot{bound_, std::move(saved.tokens), {}, {}, std::move(saved.logits), adapters_};
  for (const SavedDelegate& delegate : saved.delegates) {
    auto imported = executor().delegates().import(delegate.backend, delegate.bytes);
    if (imported.ok()) snapshot.delegates.push_back(*std::move(imported));
  }
  if (saved.states.has_value()) snapshot.states = *std::move(saved.states);
  return adopt(snapshot, static_cast<int64_t>(snapshot.tokens.size()));
}

}  // namespace mote
