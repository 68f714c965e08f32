#include "backends/vulkan/submissions.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace mote::vulkan {
namespace {

constexpr double kNsOfByte = 0.1, kNsOfProduct = 0.02, kNsOfDispatch = 5'000;
constexpr uint32_t kMostSlices = 64;  // of a dispatch
constexpr uint32_t kSpread = 65535;   // workgroups that are counted along x and on along y: group_index()

// Cuts workgroups into about `count` parts along the last dimension that has several of them.
class Slicer {
 public:
  Slicer(size_t index, const Dispatch& dispatch, std::vector<Slice>* slices)
      : index_(index), is_spread_(dispatch.groups[0] == kSpread && dispatch.groups[1] > 1), slices_(slices) {}

  void add(std::array<uint32_t, 3> base, std::array<uint32_t, 3> groups, uint32_t count) {
    const std::optional<size_t> axis = axis_of(groups);
    if (count <= 1 || !axis) {
      slices_->push_back({.dispatch = index_, .base = base, .groups = groups});
      return;
    }
    const uint32_t all = groups[*axis], first = base[*axis], parts = std::min(count, all);
    for (uint32_t i = 0; i < parts; ++i) {
      const auto bound = [&](uint32_t part) { return static_cast<uint32_t>(uint64_t{all} * part / parts); };
      base[*axis] = first + bound(i);
      groups[*axis] = bound(i + 1) - bound(i);
      add(base, groups, (count + parts - 1) / parts);
    }
  }

 private:
  std::optional<size_t> axis_of(const std::array<uint32_t, 3>& groups) const {
    if (groups[2] > 1) return 2;
    if (groups[1] > 1) return 1;
    return groups[0] > 1 && !is_spread_ ? std::optional<size_t>(0) : std::nullopt;
  }

  const size_t index_;
  const bool is_spread_;  // shaders ask how many lie along x
  std::vector<Slice>* slices_;
};

}  // namespace

Work Work::of(const Dispatch& dispatch) {
  const auto ns = [](const Cost& cost) {
    return kNsOfByte * static_cast<double>(cost.bytes) + kNsOfProduct * static_cast<double>(cost.macs);
  };
  return {kNsOfDispatch + ns(dispatch.cost), ns(dispatch.of_position), dispatch.window};
}

double Work::at(int64_t tokens, int64_t positions) const {
  const int64_t seen = window > 0 ? std::min(window, positions) : positions;
  return fixed + of_position * static_cast<double>(tokens) * static_cast<double>(seen);
}

void Pace::note(double work, double ns) {
  if (work <= 0) return;
  const double before = factor_, seen = ns / work;
  factor_ = seen > before ? std::min(seen, 4 * before) : before + (seen - before) / 4;
}

bool Cut::fits(double most_now) const {
  const bool is_too_long = largest > 2 * most_now && most > 2 * most_now;
  const bool is_too_short = num_submissions > 1 && most_now > 8 * most;
  return !is_too_long && !is_too_short;
}

Cut cut(const std::vector<Dispatch>& dispatches, const std::vector<double>& work, double most) {
  Cut made;
  made.most = most;
  double open = 0;  // work of the submission so far
  for (size_t i = 0; i < dispatches.size(); ++i) {
    const auto wanted = static_cast<uint32_t>(std::clamp(std::ceil(work[i] / most), 1.0, double{kMostSlices}));
    const size_t first = made.slices.size();
    Slicer(i, dispatches[i], &made.slices).add({}, dispatches[i].groups, wanted);
    const double each = work[i] / static_cast<double>(made.slices.size() - first);
    for (size_t k = first; k < made.slices.size(); ++k) {
      const bool begins = k == 0 || open + each > most;
      made.slices[k].begins_submission = begins;
      made.num_submissions += begins ? 1 : 0;
      open = begins ? each : open + each;
      made.largest = std::max(made.largest, open);
    }
    made.slices.back().ends_dispatch = true;
  }
  return made;
}

}  // namespace mote::vulkan
