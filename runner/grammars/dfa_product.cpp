#include "runner/grammars/dfa_product.h"

#include <algorithm>
#include <map>
#include <utility>

namespace mote::constraints {
namespace {

constexpr uint32_t kNowhere = kUnbounded;

// Walks both automata at once. `subtracts`: removes the texts of `b`, which may be in no state (kNowhere).
class Product {
 public:
  Product(const Dfa& a, const Dfa& b, bool subtracts, Budget& budget)
      : a_(a), b_(b), subtracts_(subtracts), budget_(budget) {}

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
    const auto [found, is_new] = indices_.try_emplace(pair, static_cast<uint32_t>(pairs_.size()));
    if (is_new) {
      MOTE_RETURN_IF_ERROR(budget_.spend_states(1));
      pairs_.push_back(pair);
      const bool b_accepts = pair.second != kNowhere && b_.states[pair.second].is_final;
      dfa_.states.emplace_back().is_final = a_.states[pair.first].is_final && b_accepts != subtracts_;
    }
    return found->second;
  }

  Status expand(size_t index) {
    const auto [first, second] = pairs_[index];
    static const std::vector<ByteEdge> kNone;
    const std::vector<ByteEdge>& others = second == kNowhere ? kNone : b_.states[second].bytes;
    MOTE_RETURN_IF_ERROR(budget_.spend_work(1 + others.size() + a_.states[first].bytes.size()));
    for (const ByteEdge& edge : a_.states[first].bytes) {
      uint32_t low = edge.low;
      for (const ByteEdge& other : others) {
        if (other.high < low || other.low > edge.high) continue;
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
    dfa_.states[index].bytes.push_back({static_cast<uint8_t>(low), static_cast<uint8_t>(high), target});
    return {};
  }

  const Dfa& a_;
  const Dfa& b_;
  const bool subtracts_;
  Budget& budget_;
  std::map<Pair, uint32_t> indices_;
  std::vector<Pair> pairs_;
  Dfa dfa_;
};

}  // namespace

Result<Dfa> intersect(const Dfa& a, const Dfa& b, Budget& budget) { return Product(a, b, false, budget).run(); }

Result<Dfa> subtract(const Dfa& a, const Dfa& b, Budget& budget) { return Product(a, b, true, budget).run(); }

}  // namespace mote::constraints
