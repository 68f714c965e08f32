#include "backends/proof/trial.h"

#include "backends/proof/products.h"
#include "base/log.h"

namespace mote::proof {
namespace {

// Errors of memory may be otherwise next time.
Verdict failed(const Status& status) {
  if (status.code() == Code::kOutOfMemory || status.code() == Code::kCancelled) return {};
  return {.state = State::fails, .reason = status.message()};
}

}  // namespace

Verdict Tried::read() const { return parse_verdict(read_text(file, backend.c_str()).value_or("")).value_or(Verdict()); }

void Tried::keep(const Verdict& verdict) const {
  const bool is_settled = verdict.state == State::works || verdict.state == State::fails;
  keep_text(file, to_text(verdict), is_settled, backend.c_str());
}

Status Tried::check(const Verdict& verdict) const {
  return check_tried(verdict.state, verdict.num_begun, verdict.reason, file, device);
}

std::string Tried::why_the_cpu(const Verdict& verdict) const {
  if (const Status status = check(verdict); !status.ok()) return status.message();
  const bool is_measured = verdict.state == State::works && verdict.own_ns > 0 && verdict.cpu_ns > 0;
  return is_measured ? why_slower(device, verdict.own_ns, verdict.cpu_ns) : std::string();
}

Result<std::shared_ptr<const DelegateProgram>> try_out(const Tried& tried, const DelegateSource& source,
                                                       const std::function<Result<Attempt>()>& attempt) {
  tried.keep({.state = State::trying, .num_begun = tried.read().num_begun + 1});
  const Result<Attempt> made = attempt();
  if (!made.ok()) {
    const Verdict verdict = failed(made.status());
    tried.keep(verdict);
    MOTE_RETURN_IF_ERROR(tried.check(verdict));
    return made.status();
  }
  Verdict verdict{.state = State::works, .own_ns = made->own_ns, .note = made->note};
  verdict.cpu_ns = cpu_ns_of(source.cpu_products, source);
  tried.keep(verdict);
  MOTE_LOG_LINE(kInfo, "%s: %s was tried with this file: %s a token, the CPU %s; %s", tried.backend.c_str(),
                tried.device.c_str(), milliseconds(verdict.own_ns).c_str(), milliseconds(verdict.cpu_ns).c_str(),
                verdict.note.c_str());
  return made->program;
}

}  // namespace mote::proof
