// What a caller may ask of a session.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/option_rows.h"
#include "kernels/state.h"
#include "runner/program/cpus.h"
#include "runner/session/state/prefix_cache.h"

// clang-format off
#define MOTE_SESSION_OPTIONS(X)                                                                                        \
  X(context_length, int64_t, 0, at_least(0, "0: 4096, or the model's maximum if less"), "positions", kPlain,           \
    "Tokens that the context has room for")                                                                            \
  X(kv_dtype, KvType, KvType::kFloat16, anything(), "", kPlain,                                                        \
    "Elements of the key/value cache; float32 is exact and takes twice as much, int8 about half")                      \
  X(threads, int, 0, at_least(0, "0: the physical cores, or one for each of cpus"), "threads", kPlain,                 \
    "Threads that compute")                                                                                            \
  X(prefill_chunk, int64_t, 0, at_least(0, "0: 256"), "tokens", kPlain,                                                \
    "Prompt tokens computed at once; fewer need less memory")                                                          \
  X(cpus, std::optional<std::string>, std::nullopt, noted("such as 0-3,6, or a list of numbers"), "", kPlain,          \
    "CPUs that the threads run on, and the calling thread while it computes; any unless given")                        \
  X(priority, ThreadPriority, ThreadPriority::kNormal, anything(), "", kPlain,                                         \
    "Priority of the threads beside other processes")                                                                  \
  X(overflow, Overflow, Overflow::kRefuse, anything(), "", kPlain,                                                     \
    "When the context is full: refuse more tokens, or shift: forget the oldest half behind the first num_keep and "    \
    "compute the rest again")                                                                                          \
  X(num_keep, int64_t, ::mote::kKeepSystem, at_least(-1, "-1: in a chat those of the system message, else none"),      \
    "tokens", kPlain, "First tokens that shift never forgets")                                                         \
  X(rewind_tokens, int64_t, 64, at_least(0, "0: none is kept"), "tokens", kPlain,                                      \
    "Tokens by which a model with recurrent states can go back without computing them again")                          \
  X(rewind_mb, int64_t, 256, at_least(0, "0: nothing is kept"), "MiB", kPlain,                                         \
    "Memory at most for what such a session keeps to go back: its latest tokens, and states where prompts ended")      \
  X(adapters, std::vector<std::string>, {}, noted("FILE, or FILE=WEIGHT where the weight is not 1"), "", kPlain,       \
    "Adapters whose changes are added to the model's weights")
// clang-format on

namespace mote {

enum class Overflow : int32_t { kRefuse = 0, kShift = 1 };

// As num_keep: in a chat the tokens of the system message and the tools, else none.
inline constexpr int64_t kKeepSystem = -1;

struct SessionOptions {
  MOTE_SESSION_OPTIONS(MOTE_OPTION_FIELD)
  // Where the session looks for what others have computed; nullptr: nowhere.
  std::shared_ptr<PrefixCache> prefix_cache{};
};

}  // namespace mote
