#include "runner/program/target.h"

#include <algorithm>

#include "base/log.h"
#include "runner/program/delegates.h"
#include "runner/program/validation.h"

namespace mote {
namespace {

// The parts of a target's delegates. False: bind would refuse them.
bool add_parts(const std::shared_ptr<const Verified>& verified, std::string_view target, DelegateParts* parts) {
  for (const fb::Method* method : *verified->program().methods()) {
    if (target_of(*method) != target) continue;
    for (const fb::Instruction* instruction : *method->instructions()) {
      if (text_of(*instruction->op()) == kDelegateOp && !parts->add(*instruction).ok()) return false;
    }
  }
  return true;
}

// Why other targets should be tried before this one; empty: there is no reason. A target that bind refuses is left to
// bind.
std::string why_later(const std::shared_ptr<const Verified>& verified, std::string_view target,
                      const BindOptions& options) {
  DelegateParts parts(verified, target, options);
  return add_parts(verified, target, &parts) ? parts.why_not() : std::string();
}

// The message of a status, without the file's name if it begins with that.
std::string reason(const Verified& verified, const Status& status) {
  const std::string file = verified.file().name() + ": ";
  return status.message().starts_with(file) ? status.message().substr(file.size()) : status.message();
}

Status none_works(const Verified& verified, const std::vector<PassedOver>& passed_over) {
  std::string text = verified.file().name() + ": can be run in none of its ways";
  for (const PassedOver& target : passed_over) text += "; " + target.target + ": " + target.reason;
  return {Code::kUnsupportedBackend, text + "; export it with --backend cpu for every device"};
}

}  // namespace

std::vector<Finding> findings(const std::shared_ptr<const Verified>& verified, std::string_view wanted,
                              const BindOptions& options) {
  std::vector<Finding> found;
  for (const std::string_view target : targets_of(verified->program())) {
    if (!wanted.empty() && target != wanted) continue;
    DelegateParts parts(verified, target, options);
    const std::string text = add_parts(verified, target, &parts) ? parts.findings() : std::string();
    if (!text.empty()) found.push_back({std::string(target), text});
  }
  return found;
}

Result<Chosen> choose_target(const std::shared_ptr<const Verified>& verified, const BindOptions& options) {
  struct Candidate {
    std::string_view target;
    std::string why_later;
  };
  std::vector<Candidate> order;
  for (const std::string_view target : targets_of(verified->program()))
    order.push_back({target, why_later(verified, target, options)});
  std::ranges::stable_partition(order, &std::string::empty, &Candidate::why_later);
  Chosen chosen;
  for (const auto& [target, why] : order) {
    if (chosen.bound != nullptr) {
      chosen.passed_over.push_back({std::string(target), why.empty() ? "the file prefers another" : why});
      continue;
    }
    BindOptions tried = options;
    tried.is_choice = why.empty() && &target != &order.back().target;
    Result<std::shared_ptr<const Bound>> bound = mote::bind(verified, target, tried);
    if (bound.status().code() == Code::kCancelled) return bound.status();
    if (bound.ok())
      chosen.bound = *std::move(bound);
    else
      chosen.passed_over.push_back({std::string(target), reason(*verified, bound.status())});
  }
  return chosen;
}

Result<Chosen> bind_target(Verified verified, std::string_view wanted, const BindOptions& options) {
  const auto shared = std::make_shared<const Verified>(std::move(verified));
  const std::vector<std::string_view> targets = targets_of(shared->program());
  if (wanted != kAnyBackend || targets.size() == 1) {
    MOTE_ASSIGN(auto bound, bind(shared, wanted == kAnyBackend ? targets.front() : wanted, options));
    return Chosen{std::move(bound), {}};
  }
  MOTE_ASSIGN(Chosen chosen, choose_target(shared, options));
  if (chosen.bound == nullptr) return none_works(*shared, chosen.passed_over);
  MOTE_LOG_LINE(kInfo, "%s runs on %s", shared->file().name().c_str(), std::string(chosen.bound->target()).c_str());
  for (const PassedOver& other : chosen.passed_over)
    MOTE_LOG_LINE(kInfo, "not on %s: %s", other.target.c_str(), other.reason.c_str());
  return chosen;
}

}  // namespace mote
