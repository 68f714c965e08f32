// Which of a file's targets a session runs on: when it is opened, when it is moved, and when a backend fails.
#include <algorithm>

#include "base/log.h"
#include "runner/session/session.h"
#include "runner/session/state/carry.h"

namespace mote {
namespace {

EngineOptions engine_options(const SessionOptions& options) {
  return {options.threads,
          options.cpus,
          options.priority,
          options.prefill_chunk,
          options.context_length,
          options.rewind_tokens,
          static_cast<uint64_t>(options.rewind_mb) << 20};
}

StateMemoryOptions memory_options(const SessionOptions& options) {
  return {options.context_length, options.prefill_chunk, options.kv_dtype};
}

bool has_target(const Model& model, std::string_view name) {
  const std::vector<std::string_view> targets = targets_of(model.program());
  return std::ranges::find(targets, name) != targets.end();
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(std::shared_ptr<const Model> model, const SessionOptions& requested,
                                               const Engine* engine) {
  MOTE_ASSIGN(const SessionOptions options, resolve(*model, requested));
  if (engine != nullptr) return open_on(engine->executor->bound(), std::move(model), options, engine);
  const std::string_view wanted = model->bound()->target();
  const auto open_target = [&](std::string_view target) -> Result<std::unique_ptr<Session>> {
    MOTE_ASSIGN(auto bound, model->bound_for(target));
    return open_on(std::move(bound), model, options, nullptr);
  };
  auto opened = open_target(wanted);
  const bool falls_back = !opened.ok() && is_of_device(opened.status().code()) && wanted != kCpu;
  if (!falls_back || !has_target(*model, kCpu)) return opened;
  auto on_cpu = open_target(kCpu);
  if (!on_cpu.ok()) return opened;
  (*on_cpu)->note_failure(wanted, opened.status());
  return on_cpu;
}

Result<std::unique_ptr<Session>> Session::open_on(std::shared_ptr<const Bound> bound,
                                                  std::shared_ptr<const Model> model, const SessionOptions& options,
                                                  const Engine* engine) {
  MOTE_ASSIGN(StateMemory states, StateMemory::allocate(*bound, memory_options(options)));
  std::unique_ptr<Session> session(new Session(std::move(model), std::move(bound), options, std::move(states)));
  MOTE_RETURN_IF_ERROR(session->prepare_methods(engine));
  MOTE_ASSIGN(AdapterMix adapters, load_mix(session->model(), options.adapters));
  MOTE_RETURN_IF_ERROR(session->set_adapters(std::move(adapters)));
  return session;
}

Status Session::prepare_methods(const Engine* engine) {
  MOTE_ASSIGN(calls_, MethodCalls::find(*bound_, options_.prefill_chunk));
  shares_engine_ = engine != nullptr && !bound_->has_delegate_state();
  if (shares_engine_) {
    engine_ = *engine;
  } else {
    MOTE_ASSIGN(engine_, make_engine(bound_, engine_options(options_)));
    MOTE_RETURN_IF_ERROR(executor().prepare(calls_.decode().method, 1));
  }
  MOTE_RETURN_IF_ERROR(keep_recurrent());
  MOTE_RETURN_IF_ERROR(open_head());
  position_.reserve(static_cast<size_t>(options_.context_length), longest_draft());
  return {};
}

// A head that follows goes on to do so, from here.
Status Session::open_head() {
  const bool follows = head_.follows();
  guesses_.clear();
  head_ = DraftHead();
  if (!shares_engine_) { MOTE_ASSIGN(head_, DraftHead::open(*bound_, memory_options(options_))); }
  head_.follow(follows);
  return {};
}

Status Session::move_to(std::string_view backend) {
  MOTE_ASSIGN(std::shared_ptr<const Bound> bound, model_->bound_for(backend));
  if (bound == bound_) return {};
  MOTE_REQUIRE(!shares_engine_, Code::kInvalidArgument,
               "the session is one of a batch, which runs on %s: move a session of its own",
               std::string(bound_->target()).c_str());
  MOTE_REQUIRE(adapters_.empty() || bound->backends().empty(), Code::kUnsupportedBackend,
               "%s: adapters change weights that the backends of target %s read themselves: take them from the session "
               "first",
               model_->path().c_str(), std::string(bound->target()).c_str());
  MOTE_RETURN_IF_ERROR(go_on_in(std::move(bound)));
  moved_because_.clear();
  return {};
}

// Makes another target the session's. After an error nothing has changed.
Status Session::go_on_in(std::shared_ptr<const Bound> bound) {
  forget_draft();
  SessionOptions options = options_;
  options.prefill_chunk = std::min(options.prefill_chunk, longest_call(*bound));
  MOTE_ASSIGN(StateMemory states, StateMemory::allocate(*bound, memory_options(options)));
  MOTE_ASSIGN(const MethodCalls calls, MethodCalls::find(*bound, options.prefill_chunk));
  Engine engine = engine_;
  MOTE_ASSIGN(engine.executor, make_executor(bound, engine_options(options), *engine.threads));
  MOTE_RETURN_IF_ERROR(engine.executor->prepare(calls.decode().method, 1));
  MOTE_RETURN_IF_ERROR(
      states.recurrent().keep(engine.executor->recurrent_rows(calls.decode().method), rewind_limits(options)));
  const std::vector<int32_t> ids(tokens().begin(), tokens().end());
  const int64_t computed = position_.is_interrupted() ? 0 : position_.num_computed();
  if (computed > 0) MOTE_RETURN_IF_ERROR(settle_states());
  std::vector<float> logits = position_.kept_logits();
  if (position_.has_row()) {
    const auto latest = returned_logits();  // where a device is gone, they are not known
    if (latest.ok()) logits.assign(latest->begin(), latest->end());
  }
  const bool carries =
      computed > 0 && carry_states({*bound_, states_, executor().delegates()},
                                   {*bound, states, engine.executor->delegates()}, computed, *engine.threads);
  options_ = std::move(options);
  states_ = std::move(states);
  bound_ = std::move(bound);
  engine_ = std::move(engine);
  calls_ = calls;
  shares_engine_ = false;
  if (profile_ != nullptr) profile_->clear();  // it names methods of the target before
  position_.reset();
  position_.reserve(static_cast<size_t>(options_.context_length), longest_draft());
  if (!carries) reset();
  const size_t kept = carries ? static_cast<size_t>(computed) : 0;
  if (carries) position_.adopt(std::span(ids).first(kept), std::move(logits));
  if (kept < ids.size()) position_.defer(std::span(ids).subspan(kept));
  if (!open_head().ok()) head_ = DraftHead();  // which the target can do without
  return {};
}

// After a call that failed: where that was the fault of a backend or its device and the file has a target for the CPU,
// the session goes on there, and its tokens are those that it had. Else `failed` is returned.
Status Session::leave_backend(const Status& failed) {
  if (!is_of_device(failed.code()) || executor().delegates().failure().ok()) return failed;
  if (bound_->target() == kCpu || !has_target(*model_, kCpu)) return failed;
  const std::string left(bound_->target());
  auto bound = model_->bound_for(kCpu);
  if (!bound.ok() || !go_on_in(*std::move(bound)).ok()) return failed;
  note_failure(left, failed);
  return {};
}

void Session::note_failure(std::string_view left, const Status& failed) {
  moved_because_ = failed.message();
  MOTE_LOG_LINE(kInfo, "%s: a session left %s and runs on %s: %s", model_->path().c_str(), std::string(left).c_str(),
                std::string(backend()).c_str(), moved_because_.c_str());
}

}  // namespace mote
