// Which tokens a state allows, worked out once and kept.
//
// A state alone decides for most tokens whether they may come next. The other tokens leave the state's rule midway. The
// nodes of the token tree at which they do so, a frontier, are kept beside the decided tokens. Which tokens below a
// frontier are allowed in the state that the rule returns to is computed once and kept too. So a mask is a union of
// kept sets.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runner/grammars/configuration.h"
#include "runner/grammars/vocabulary.h"

namespace mote::constraints {

// Thread safety: any number of threads; they take turns.
class Masks {
 public:
  // Both outlive the masks.
  Masks(const Automaton& automaton, const Vocabulary& vocabulary);

  // Sets the bits of the tokens that `at` allows, end-of-sequence tokens left out. `mask`: zeros,
  // vocabulary.mask_words() words. Errors: kInvalidArgument if the grammar is too ambiguous to follow its texts.
  Status fill(const Configuration& at, std::span<uint32_t> mask) const;

  // Memory that is kept now. Does not wait for a mask under way.
  size_t num_bytes() const { return class_of_.capacity() * sizeof(uint32_t) + bytes_; }

 private:
  struct Tokens {
    std::vector<int32_t> ids;     // the allowed tokens, if they are few
    std::vector<uint32_t> words;  // else their mask
    uint32_t frontier = 0;        // where tokens leave the rule
    size_t work = 0;              // that it takes to find them
    bool exhausted = false;
  };
  using Frontier = std::vector<uint32_t>;  // nodes, ascending
  struct Visit {
    uint32_t frontier;
    uint32_t state;
    const Stack* stack;
    friend bool operator==(const Visit&, const Visit&) = default;
  };
  struct VisitHash {
    size_t operator()(const Visit& visit) const;
  };
  // One mask under way.
  struct Filling {
    std::span<uint32_t> mask;
    std::unordered_set<Visit, VisitHash> visits{};
    size_t work = 0;
  };
  class Walk;

  void classify_states();
  void use_own_classes();
  uint64_t hash_of_edges(uint32_t index) const;
  bool have_equal_edges(uint32_t a, uint32_t b) const;
  Status add(uint32_t frontier, uint32_t state, const StackPointer& stack, Filling& filling) const;
  std::shared_ptr<const Tokens> tokens_of(uint32_t frontier, uint32_t state) const;
  uint32_t intern(Frontier frontier) const;

  const Automaton& automaton_;
  const Vocabulary& vocabulary_;
  std::vector<uint32_t> class_of_;  // of a state: those of one class allow the same tokens
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const Frontier>> frontiers_;
  mutable std::unordered_multimap<uint64_t, uint32_t> frontier_ids_;           // by hash
  mutable std::unordered_map<uint64_t, std::shared_ptr<const Tokens>> known_;  // by frontier and class
  mutable std::atomic<size_t> bytes_ = 0;
};

}  // namespace mote::constraints
