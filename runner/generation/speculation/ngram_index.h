// Where the end of a text occurred before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mote {

// The earlier places of every so many ids in a row, newest first.
class NgramChains {
 public:
  explicit NgramChains(size_t size) : size_(size) {}

  // The n-grams that end in text[first..].
  void append(std::span<const int32_t> text, size_t first);
  // Forgets those that end at or behind `length`. `text` as it was.
  void truncate(std::span<const int32_t> text, size_t length);
  // body(end) for places text[..end) that may end as the text does, newest first, while it returns true.
  template <typename Body> void for_each_candidate(std::span<const int32_t> text, const Body& body) const;

 private:
  size_t bucket(std::span<const int32_t> text, size_t end) const;
  void rebuild(std::span<const int32_t> text, size_t num_buckets);

  size_t size_;
  std::vector<int32_t> newest_;    // by bucket, the end of an n-gram; 0: none. A power of two of them.
  std::vector<int32_t> previous_;  // by end: the one before in its bucket
};

// Thread safety: one thread at a time. Cost of a token: two hashes and at most kMostCandidates comparisons, whatever
// the length of the text; memory: 20 bytes a token.
class NgramIndex {
 public:
  static constexpr size_t kShortest = 2;
  static constexpr size_t kLongest = 32;
  static constexpr int kMostCandidates = 64;

  // The text is now this one; an empty one after std::bad_alloc. Cost: what is new; with `is_same` false also a
  // comparison of all.
  void update(std::span<const int32_t> text, bool is_same);

  struct Match {
    size_t end = 0;     // text[end] followed when the last `length` ids occurred before
    size_t length = 0;  // kShortest..kLongest
  };
  // The longest; the newest of those.
  std::optional<Match> find() const;

  std::span<const int32_t> text() const { return text_; }

 private:
  void look_through(const NgramChains& chains, Match& best) const;

  std::vector<int32_t> text_;
  NgramChains long_{5};
  NgramChains short_{kShortest};
};

}  // namespace mote
