// How the dispatches of a call are cut into submissions that a device ends soon enough: systems end what keeps a GPU
// from the screen for longer, and the process with it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "backends/vulkan/plan.h"

namespace mote::vulkan {

// What a dispatch is, in nanoseconds of a device that reads 10 GB/s and makes 50 products a nanosecond.
struct Work {
  double fixed = 0, of_position = 0;  // of_position: for each position that a token sees
  int64_t window = 0;                 // of them at most; 0: all

  static Work of(const Dispatch& dispatch);
  double at(int64_t tokens, int64_t positions) const;
};

// How much longer a device takes than that one, learnt from calls. Thread safety: any thread.
class Pace {
 public:
  explicit Pace(double factor) : factor_(factor) {}
  double factor() const { return factor_; }
  // Slower at once, though a call that waited for others says little; faster by and by.
  void note(double work, double ns);

 private:
  std::atomic<double> factor_;
};

// Some of a dispatch's workgroups.
struct Slice {
  size_t dispatch = 0;
  std::array<uint32_t, 3> base{}, groups{};
  bool begins_submission = false, ends_dispatch = false;
};

struct Cut {
  std::vector<Slice> slices;
  size_t num_submissions = 0;
  double most = 0, largest = 0;  // work of a submission, as it was asked for and as it is

  // Whether a call of other limits would better be cut anew.
  bool fits(double most_now) const;
};

// work: of each dispatch. A submission has at most so much of it, unless it is a single slice that cannot be less.
Cut cut(const std::vector<Dispatch>& dispatches, const std::vector<double>& work, double most);

}  // namespace mote::vulkan
