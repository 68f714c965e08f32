#include "backends/proof/sample.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "kernels/op.h"

namespace mote::proof {
namespace {

using Clock = std::chrono::steady_clock;

// Wrong variants give other numbers, not others in the last places: caches of 16 bits may not fail here.
constexpr float kLeastTolerance = 1e-2f;

Tensor row_of(DType dtype, void* data, int64_t count) {
  Tensor tensor;
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.rank = 2;
  tensor.sizes = {1, count};
  tensor.set_contiguous_strides();
  return tensor;
}

// One sequence on the device, with the delegate that a session would have.
class Sequence {
 public:
  explicit Sequence(Delegate& delegate) : delegate_(delegate) {}

  // A call with these tokens; where they are fewer than the part's, the last one fills it up and is taken back.
  Status feed(const WholePart& part, std::span<const int32_t> tokens) {
    const size_t count = part.tokens == 0 ? tokens.size() : static_cast<size_t>(part.tokens);
    std::vector<int64_t> ids(tokens.begin(), tokens.end()), positions(count);
    ids.resize(count, tokens.back());
    for (size_t i = 0; i < count; ++i) positions[i] = position_ + static_cast<int64_t>(i);
    width_ = static_cast<size_t>(part.width);
    row_ = part.every_row ? tokens.size() - 1 : 0;
    given_.resize(width_ * (part.every_row ? count : 1));
    std::array<Tensor, 2> inputs;
    inputs[part.ids] = row_of(DType::kInt64, ids.data(), static_cast<int64_t>(count));
    inputs[part.positions] = row_of(DType::kInt64, positions.data(), static_cast<int64_t>(count));
    Tensor logits = row_of(DType::kFloat32, given_.data(), static_cast<int64_t>(given_.size()));
    const std::array<const Tensor*, 2> ins = {&inputs[0], &inputs[1]};
    const std::array<Tensor*, 1> outs = {&logits};
    Call call{};
    call.inputs = ins;
    call.outputs = outs;
    SequenceStates sequence;
    sequence.tokens = static_cast<int64_t>(count);
    sequence.num_kept = static_cast<int64_t>(tokens.size());
    KernelContext context;
    context.sequences = {&sequence, 1};
    MOTE_RETURN_IF_ERROR(delegate_.prepare(part.index, call, static_cast<int64_t>(count)).status());
    const Clock::time_point start = Clock::now();
    MOTE_RETURN_IF_ERROR(delegate_.execute(part.index, call, context));
    ns_ = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
    position_ += static_cast<int64_t>(count);
    return count == tokens.size() ? Status() : go_to(position_ - static_cast<int64_t>(count - tokens.size()));
  }

  Status go_to(int64_t position) {
    MOTE_REQUIRE(delegate_.seek(position), Code::kUnsupportedBackend, "it does not go back to position %lld",
                 static_cast<long long>(position));
    position_ = position;
    return {};
  }

  uint64_t ns() const { return ns_; }  // of the latest call
  // After the last of the tokens that were fed; not known of a call that was filled up and gives one row.
  std::span<const float> logits() const { return std::span(given_).subspan(row_ * width_, width_); }

 private:
  Delegate& delegate_;
  std::vector<float> given_;
  size_t width_ = 0, row_ = 0;
  int64_t position_ = 0;
  uint64_t ns_ = 0;
};

Status compare(const Sample& sample, size_t step, std::span<const float> logits) {
  const auto logit = [&](int32_t id) {
    return id >= 0 && static_cast<size_t>(id) < logits.size() ? logits[static_cast<size_t>(id)] : NAN;
  };
  double worst = 0.0;
  for (size_t i = 0; i < sample.probes.size(); ++i) {
    const float error = std::abs(logit(sample.probes[i]) - sample.logits[step * sample.probes.size() + i]);
    worst = std::isfinite(error) ? std::max(worst, static_cast<double>(error)) : HUGE_VAL;
  }
  const double allowed = static_cast<double>(sample.tolerance * sample.largest);
  const double behind =
      static_cast<double>(*std::ranges::max_element(logits) - logit(sample.expected[step])) - 2.0 * allowed;
  MOTE_REQUIRE(worst <= allowed && behind <= 0.0, Code::kUnsupportedBackend,
               "its logits are not those of PyTorch: token %zu of a sample differs by %.2g of the largest, and %.2g "
               "is allowed",
               step, worst / static_cast<double>(sample.largest), static_cast<double>(sample.tolerance));
  return {};
}

// A sample on its way through the parts of a program.
class Replay {
 public:
  Replay(Delegate& delegate, std::span<const WholePart> parts, const Sample& sample)
      : delegate_(delegate), parts_(parts), sample_(sample), sequence_(delegate) {
    for (const WholePart& part : parts) {
      if (part.tokens <= 1) single_ = &part;
    }
  }

  Result<uint64_t> run() {
    if (single_ == nullptr) return uint64_t{0};
    std::span<const int32_t> rest(sample_.prompt);
    for (size_t turn = 0; !rest.empty(); ++turn) {
      const WholePart& part = longest(rest.size(), turn);
      const size_t count = part.tokens == 0 ? rest.size() : static_cast<size_t>(part.tokens);
      MOTE_RETURN_IF_ERROR(sequence_.feed(part, rest.first(count)));
      rest = rest.subspan(count);
    }
    MOTE_RETURN_IF_ERROR(compare(sample_, 0, sequence_.logits()));
    MOTE_RETURN_IF_ERROR(go_on());
    for (const WholePart& part : parts_) {
      const bool is_longer = part.tokens > static_cast<int64_t>(sample_.prompt.size());
      if (is_longer && delegate_.most_taken_back() >= part.tokens) MOTE_RETURN_IF_ERROR(fill_up(part));
    }
    return shortest_;
  }

 private:
  // Of those that `count` tokens fill the longest one, another each time where there are several.
  const WholePart& longest(size_t count, size_t turn) const {
    std::vector<const WholePart*> best;
    const auto reach = [&](const WholePart& part) {
      return part.tokens == 0                            ? count
             : static_cast<size_t>(part.tokens) <= count ? static_cast<size_t>(part.tokens)
                                                         : 0;
    };
    for (const WholePart& part : parts_) {
      if (!best.empty() && reach(part) > reach(*best.front())) best.clear();
      if (reach(part) > 0 && (best.empty() || reach(part) == reach(*best.front()))) best.push_back(&part);
    }
    return best.empty() ? *single_ : *best[turn % best.size()];
  }

  // Single tokens behind the prompt.
  Status go_on() {
    const size_t num_steps = std::min(kMostSteps, sample_.expected.size());
    for (size_t step = 1; step < num_steps; ++step) {
      MOTE_RETURN_IF_ERROR(sequence_.feed(*single_, std::span(sample_.expected).subspan(step - 1, 1)));
      MOTE_RETURN_IF_ERROR(compare(sample_, step, sequence_.logits()));
      shortest_ = shortest_ == 0 ? sequence_.ns() : std::min(shortest_, sequence_.ns());
    }
    return {};
  }

  // The prompt in one call that it does not fill. What gives one row only is seen in what follows.
  Status fill_up(const WholePart& part) {
    MOTE_RETURN_IF_ERROR(sequence_.go_to(0));
    MOTE_RETURN_IF_ERROR(sequence_.feed(part, sample_.prompt));
    if (!part.every_row) {
      MOTE_RETURN_IF_ERROR(sequence_.go_to(static_cast<int64_t>(sample_.prompt.size()) - 1));
      MOTE_RETURN_IF_ERROR(sequence_.feed(*single_, std::span(sample_.prompt).last(1)));
    }
    MOTE_RETURN_IF_ERROR(compare(sample_, 0, sequence_.logits()));
    return go_on();
  }

  Delegate& delegate_;
  std::span<const WholePart> parts_;
  const Sample& sample_;
  Sequence sequence_;
  const WholePart* single_ = nullptr;
  uint64_t shortest_ = 0;
};

}  // namespace

std::optional<Sample> first_short(const std::vector<DelegateSample>& samples) {
  for (const DelegateSample& from : samples) {
    const bool fits = !from.prompt.empty() && from.prompt.size() <= kMostPrompt && !from.expected.empty() &&
                      from.logits.size() == from.expected.size() * from.probes.size();
    if (!fits) continue;
    Sample sample{{from.prompt.begin(), from.prompt.end()},
                  {from.expected.begin(), from.expected.end()},
                  {from.probes.begin(), from.probes.end()},
                  {from.logits.begin(), from.logits.end()},
                  std::max(from.tolerance, kLeastTolerance)};
    for (const float logit : sample.logits) sample.largest = std::max(sample.largest, std::abs(logit));
    if (sample.largest > 0.0f) return sample;  // a file that is being exported has zeros there
  }
  return std::nullopt;
}

Result<uint64_t> replay(const DelegateProgram& program, std::span<const WholePart> parts, const Sample& sample) {
  if (parts.empty()) return uint64_t{0};
  MOTE_ASSIGN(const std::unique_ptr<Delegate> delegate,
              program.open({.max_tokens = static_cast<int64_t>(kMostPrompt),
                            .context_length = static_cast<int64_t>(sample.prompt.size() + kMostSteps)}));
  return Replay(*delegate, parts, sample).run();
}

}  // namespace mote::proof
