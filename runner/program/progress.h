// How far a long call has come, told to whoever may end it.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "base/status.h"

namespace mote {

// Called with what is done of the whole, 0..1, by the thread that does it, under no lock. An error ends the call, which
// returns it; it is kCancelled. Empty: nobody asks.
using Progress = std::function<Status(double fraction)>;

inline Status report(const Progress& progress, double fraction) {
  return progress ? progress(std::clamp(fraction, 0.0, 1.0)) : Status();
}

// For the part of the whole that lasts from `begin` to `end`. `whole` outlives it.
inline Progress part_of(const Progress& whole, double begin, double end) {
  if (!whole) return {};
  return [&whole, begin, end](double fraction) { return whole(begin + (end - begin) * fraction); };
}

// Tells `progress` the largest fraction so far: of several ways that are tried one after the other each begins at 0.
inline Progress never_back(Progress progress) {
  if (!progress) return {};
  return [progress = std::move(progress), most = std::make_shared<double>(0.0)](double fraction) {
    *most = std::max(*most, fraction);
    return progress(*most);
  };
}

}  // namespace mote
