#include "runner/grammars/dfa_product.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace mote::constraints {
namespace {

constexpr uint32_t kNowhere = kUnbounded;
constexpr size_t kBytesOfPair = 120;  // with its state and edges

// Walks both automata at once. `subtracts`: removes the texts of `b`, which may be in no state (kNowhere).
class Product {
 public:
  Product(const Dfa& a, const Dfa& b, bool subtracts, Determinizing& shared)
      : a_(a), b_(b), subtracts_(subtracts), shared_(shared), held_(shared.budget) {}

  Result<Dfa> run() {
    if (a_.states.empty()) return Dfa();
    if (b_.states.empty() && !subtracts_) return Dfa();
    MOTE_RETURN_IF_ERROR(index_of({0, b_.states.empty() ? kNowhere : 0}).status());
    for (size_t i = 0; i < pairs_.size(); ++i) MOTE_RETURN_IF_ERROR(expand(i));
    trim(dfa_, {});
    return std::move(dfa_);
  }

 private:
  using Pair = std::pair<uint32_t, uint32_t>;

  Result<uint32_t> index_of(const Pair& pair) {
    const uint64_t key = uint64_t{pair.first} << 32 | pair.second;
    const auto [found, is_new] = indices_.try_emplace(key, static_cast<uint32_t>(pairs_.size()));
    if (is_new) {
      MOTE_RETURN_IF_ERROR(shared_.budget.spend(4));
      held_.add(kBytesOfPair);
      pairs_.push_back(pair);
      const bool b_accepts = pair.second != kNowhere && b_.states[pair.second].is_final;
      dfa_.states.emplace_back().is_final = a_.states[pair.first].is_final && b_accepts != subtracts_;
    }
    return found->second;
  }

  Status expand(size_t index) {
    const auto [first, second] = pairs_[index];
    std::span<const ByteEdge> others;
    if (second != kNowhere) others = b_.bytes_of(b_.states[second]);
    const std::span<const ByteEdge> edges = a_.bytes_of(a_.states[first]);
    dfa_.states[index].first_byte = static_cast<uint32_t>(dfa_.bytes.size());
    MOTE_RETURN_IF_ERROR(shared_.budget.spend(1 + others.size() + edges.size()));
    auto nearest = others.begin();
    for (const ByteEdge& edge : edges) {
      uint32_t low = edge.low;
      while (nearest != others.end() && nearest->high < low) ++nearest;
      for (auto at = nearest; at != others.end() && at->low <= edge.high; ++at) {
        const ByteEdge& other = *at;
        if (subtracts_ && other.low > low)
          MOTE_RETURN_IF_ERROR(add(index, low, other.low - 1U, {edge.target, kNowhere}));
        low = std::max<uint32_t>(low, other.low);
        const uint32_t high = std::min(edge.high, other.high);
        MOTE_RETURN_IF_ERROR(add(index, low, high, {edge.target, other.target}));
        low = high + 1;
      }
      if (subtracts_ && low <= edge.high) MOTE_RETURN_IF_ERROR(add(index, low, edge.high, {edge.target, kNowhere}));
    }
    return {};
  }

  Status add(size_t index, uint32_t low, uint32_t high, const Pair& to) {
    MOTE_ASSIGN(const uint32_t target, index_of(to));
    dfa_.bytes.push_back({static_cast<uint8_t>(low), static_cast<uint8_t>(high), target});
    ++dfa_.states[index].num_bytes;
    return {};
  }

  const Dfa& a_;
  const Dfa& b_;
  const bool subtracts_;
  Determinizing& shared_;
  HeldBytes held_;
  std::unordered_map<uint64_t, uint32_t> indices_;
  std::vector<Pair> pairs_;
  Dfa dfa_;
};

}  // namespace

Result<Dfa> intersect(const Dfa& a, const Dfa& b, Determinizing& shared) { return Product(a, b, false, shared).run(); }

Result<Dfa> subtract(const Dfa& a, const Dfa& b, Determinizing& shared) { return Product(a, b, true, shared).run(); }

}  // namespace mote::constraints
