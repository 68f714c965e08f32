// What a session held at one moment. It shares the session's memory and never changes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runner/program/delegates.h"
#include "runner/session/adapters/adapter.h"
#include "runner/session/state/memory.h"

namespace mote {

// Of what draft heads have read, and what they have not read yet.
struct DraftHeadSnapshot {
  struct Layer {
    int64_t filled = 0;
    StateSnapshot states{};
    std::vector<float> rows{};
  };
  int64_t base = 0;
  std::vector<Layer> layers{};  // empty: nothing
};

struct SessionSnapshot {
  std::shared_ptr<const Bound> bound;  // of the model
  std::vector<int32_t> tokens{};
  StateSnapshot states{};
  std::vector<NamedSnapshot> delegates{};  // of those that keep states
  std::vector<float> logits{};             // after the last token; empty: not known
  AdapterMix adapters{};                   // that it was computed with
  DraftHeadSnapshot head{};
};

}  // namespace mote
