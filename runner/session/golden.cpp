#include "runner/session/golden.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.h"
#include "base/parts.h"

namespace mote {
namespace {

// Replays one sample.
class Replay {
 public:
  Replay(Session& session, const Tokenizer* tokenizer, const fb::GoldenSample& sample)
      : session_(session), tokenizer_(tokenizer), sample_(sample) {
    for (const float logit : *sample.probe_logits()) largest_ = std::max(largest_, std::abs(logit));
  }

  Status run() {
    session_.reset();
    const std::span<const int32_t> prompt(sample_.prompt_ids()->data(), sample_.prompt_ids()->size());
    const auto& expected = *sample_.expected_ids();
    MOTE_RETURN_IF_ERROR(session_.require_room(prompt.size() + expected.size() - 1));
    MOTE_ASSIGN(std::span<const float> logits, session_.prefill(prompt));
    for (uint32_t step = 0; step < expected.size(); ++step) {
      compare(step, logits);
      if (step + 1 < expected.size()) { MOTE_ASSIGN(logits, session_.decode(expected[step])); }
    }
    return {};
  }

  bool passed() const {
    return tokenizer_agrees() && matched_ == sample_.expected_ids()->size() &&
           max_relative_error_ <= static_cast<double>(sample_.tolerance());
  }

  // JSON has no infinity; null stands for a logit that is not a number.
  JsonText report() const {
    return {{"text", sample_.text()->str()},
            {"prompt_tokens", sample_.prompt_ids()->size()},
            {"tokens", sample_.expected_ids()->size()},
            {"matched_tokens", matched_},
            {"max_relative_error", max_relative_error_},
            {"tolerance", sample_.tolerance()},
            {"tokenizer_agrees", tokenizer_agrees()},
            {"passed", passed()}};
  }

 private:
  void compare(uint32_t step, std::span<const float> logits) {
    const auto& probes = *sample_.probe_ids();
    for (uint32_t i = 0; i < probes.size(); ++i) {
      const float recorded = sample_.probe_logits()->Get(step * probes.size() + i);
      const float computed = logits[static_cast<size_t>(probes[i])];
      const double difference = std::abs(static_cast<double>(computed) - static_cast<double>(recorded));
      const double error = difference == 0.0 ? 0.0 : difference / static_cast<double>(largest_);
      const bool is_number = std::isfinite(computed);
      max_relative_error_ = is_number ? std::max(max_relative_error_, error) : std::numeric_limits<double>::infinity();
    }
    const float largest = *std::max_element(logits.begin(), logits.end());
    const float expected = logits[static_cast<size_t>(sample_.expected_ids()->Get(step))];
    if (expected >= largest - 2.0f * sample_.tolerance() * largest_) ++matched_;
  }

  bool tokenizer_agrees() const {
    if (tokenizer_ == nullptr || sample_.text()->size() == 0) return true;
    const auto ids = tokenizer_->encode(sample_.text()->string_view(), {});
    return ids.ok() && std::equal(ids->begin(), ids->end(), sample_.prompt_ids()->begin(), sample_.prompt_ids()->end());
  }

  Session& session_;
  const Tokenizer* tokenizer_;
  const fb::GoldenSample& sample_;
  float largest_ = 0.0f;
  uint32_t matched_ = 0;
  double max_relative_error_ = 0.0;
};

// Replays all samples of texts.
Result<GoldenReport> replay_all(Session& session) {
  MOTE_ASSIGN(const Tokenizer* tokenizer, session.model().tokenizer());
  GoldenReport report;
  report.passed = true;
  JsonText samples = JsonText::array();
  for (const fb::GoldenSample* sample : *session.model().program().golden_samples()) {
    if (sample->method() != nullptr) continue;
    Replay replay(session, tokenizer, *sample);
    MOTE_RETURN_IF_ERROR(replay.run());
    report.passed = report.passed && replay.passed();
    samples.push_back(replay.report());
  }
  report.json = JsonText{{"passed", report.passed}, {"samples", samples}}.dump();
  return report;
}

}  // namespace

Result<GoldenReport> check_golden(Session& session) {
  MOTE_REQUIRE_PART("reports", Code::kInvalidArgument);
  const KvType held = session.options().kv_dtype;
  MOTE_RETURN_IF_ERROR(session.set_kv_dtype(KvType::kFloat32));
  Result<GoldenReport> report = replay_all(session);
  MOTE_RETURN_IF_ERROR(session.set_kv_dtype(held));
  return report;
}

}  // namespace mote
