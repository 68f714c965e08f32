#include "runner/grammars/vocabulary.h"

#include <algorithm>

#include "runner/grammars/budget.h"

namespace mote::constraints {

Result<std::shared_ptr<const Vocabulary>> Vocabulary::make(std::vector<std::string> tokens,
                                                           std::vector<int32_t> eos_ids) {
  MOTE_REQUIRE(!tokens.empty() && tokens.size() < (size_t{1} << 26), Code::kInvalidArgument,
               "a vocabulary of %zu tokens: must be 1..2^26-1", tokens.size());
  for (const int32_t id : eos_ids) {
    MOTE_REQUIRE(id >= 0 && static_cast<size_t>(id) < tokens.size(), Code::kInvalidArgument,
                 "end-of-sequence token %d: must be 0..%zu", id, tokens.size() - 1);
    tokens[static_cast<size_t>(id)].clear();
  }
  const std::shared_ptr<Vocabulary> result(new Vocabulary());
  result->tokens_ = std::move(tokens);
  result->eos_ids_ = std::move(eos_ids);
  result->build_tree();
  return std::shared_ptr<const Vocabulary>(result);
}

bool Vocabulary::is_eos(int32_t id) const { return std::find(eos_ids_.begin(), eos_ids_.end(), id) != eos_ids_.end(); }

std::span<const int32_t> Vocabulary::ids(uint32_t node) const {
  const size_t first = nodes_[node].first_id;
  const size_t end = node + 1 < nodes_.size() ? nodes_[node + 1].first_id : sorted_.size();
  return {sorted_.data() + first, end - first};
}

void Vocabulary::build_tree() {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (!tokens_[i].empty() && tokens_[i].size() <= kMaxTokenBytes) sorted_.push_back(static_cast<int32_t>(i));
  }
  std::sort(sorted_.begin(), sorted_.end(), [&](int32_t a, int32_t b) {
    const int order = bytes(a).compare(bytes(b));
    return order != 0 ? order < 0 : a < b;
  });
  nodes_.emplace_back();
  std::vector<uint32_t> path = {0};  // nodes of the token before, one for each of its bytes and the root
  std::string_view before;
  for (size_t i = 0; i < sorted_.size(); ++i) {
    const std::string_view token = bytes(sorted_[i]);
    longest_ = std::max(longest_, token.size());
    const auto shared = static_cast<size_t>(
        std::mismatch(token.begin(), token.end(), before.begin(), before.end()).first - token.begin());
    for (; path.size() > shared + 1; path.pop_back()) nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
    for (size_t j = shared; j < token.size(); ++j) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      // A node's ids end where those of the next begin, so one without ids begins where its first child does.
      nodes_.push_back({0, static_cast<uint32_t>(i), static_cast<uint8_t>(token[j])});
    }
    before = token;
  }
  for (const uint32_t node : path) nodes_[node].end = static_cast<uint32_t>(nodes_.size());
}

}  // namespace mote::constraints
