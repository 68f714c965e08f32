#include "runner/embedding/pooled.h"

#include <algorithm>
#include <cmath>

namespace mote {

void Pooled::start(Pooling pooling, size_t dimensions, int64_t skipped) {
  pooling_ = pooling;
  skipped_ = skipped;
  num_seen_ = 0;
  weight_ = 0.0;
  values_.assign(dimensions, 0.0);
}

void Pooled::add(std::span<const float> hidden) {
  ++num_seen_;
  if (num_seen_ <= skipped_) return;
  const bool is_first = weight_ == 0.0;
  const double weight = pooling_ == Pooling::kWeightedMean ? static_cast<double>(num_seen_) : 1.0;
  weight_ += weight;
  for (size_t i = 0; i < values_.size(); ++i) {
    const auto value = static_cast<double>(hidden[i]);
    switch (pooling_) {
      case Pooling::kLastToken: values_[i] = value; break;
      case Pooling::kFirstToken: values_[i] = is_first ? value : values_[i]; break;
      case Pooling::kMax: values_[i] = is_first ? value : std::max(values_[i], value); break;
      case Pooling::kMean:
      case Pooling::kMeanSqrtLength:
      case Pooling::kWeightedMean: values_[i] += weight * value; break;
    }
  }
}

void Pooled::write(bool normalized, std::span<float> to) const {
  double divisor = 1.0;
  if (pooling_ == Pooling::kMean || pooling_ == Pooling::kWeightedMean) divisor = std::max(weight_, 1.0);
  if (pooling_ == Pooling::kMeanSqrtLength) divisor = std::sqrt(std::max(weight_, 1.0));
  if (normalized) {
    double squares = 0.0;
    for (size_t i = 0; i < to.size(); ++i) squares += values_[i] / divisor * (values_[i] / divisor);
    if (squares > 0.0) divisor *= std::sqrt(squares);
  }
  for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(values_[i] / divisor);
}

}  // namespace mote
