// Replays the embeddings that eager PyTorch computed when the file was written.
#include <cmath>
#include <limits>
#include <utility>

#include "base/json.h"
#include "runner/embedding/embedder.h"

namespace mote {
namespace {

// The largest difference at the recorded dimensions, relative to the largest value that was recorded.
double relative_error(const fb::GoldenSample& sample, std::span<const float> found) {
  double largest = 0.0, difference = 0.0;
  for (uint32_t i = 0; i < sample.probe_ids()->size(); ++i) {
    const auto index = static_cast<size_t>(sample.probe_ids()->Get(i));
    if (index >= found.size() || !std::isfinite(found[index])) return std::numeric_limits<double>::infinity();
    const auto recorded = static_cast<double>(sample.probe_logits()->Get(i));
    largest = std::max(largest, std::abs(recorded));
    difference = std::max(difference, std::abs(static_cast<double>(found[index]) - recorded));
  }
  return difference == 0.0 ? 0.0 : difference / largest;
}

}  // namespace

Result<std::string> Embedder::check_golden() {
  const KvType held = std::exchange(options_.kv_dtype, KvType::kFloat32);
  slots_.clear();
  Result<std::string> report = replay_golden();
  slots_.clear();
  options_.kv_dtype = held;
  return report;
}

Result<std::string> Embedder::replay_golden() {
  MOTE_ASSIGN(const Tokenizer* tokenizer, model_->tokenizer());
  bool all_passed = true;
  JsonText samples = JsonText::array();
  std::vector<float> found(static_cast<size_t>(config_.dimensions));
  for (const fb::GoldenSample* sample : *model_->program().golden_samples()) {
    if (sample->method() == nullptr) continue;
    const std::span<const int32_t> ids(sample->prompt_ids()->data(), sample->prompt_ids()->size());
    const EmbedInput input{{}, ids, false};
    MOTE_RETURN_IF_ERROR(embed({&input, 1}, {.normalized = false, .cut_to_fit = false}, found.data(), {}));
    bool agrees = true;
    if (tokenizer != nullptr && sample->text()->size() > 0) {
      const auto of_text = tokenizer->encode(sample->text()->string_view(), {});
      agrees = of_text.ok() && std::ranges::equal(*of_text, ids);
    }
    const double error = relative_error(*sample, found);
    const bool passed = agrees && error <= static_cast<double>(sample->tolerance());
    all_passed = all_passed && passed;
    samples.push_back({{"text", sample->text()->str()},
                       {"prompt_tokens", ids.size()},
                       {"tokens", 1},
                       {"matched_tokens", passed ? 1 : 0},
                       {"max_relative_error", error},
                       {"tolerance", sample->tolerance()},
                       {"tokenizer_agrees", agrees},
                       {"passed", passed}});
  }
  return JsonText{{"passed", all_passed}, {"samples", samples}}.dump();
}

}  // namespace mote
