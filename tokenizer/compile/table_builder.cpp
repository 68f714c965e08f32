#include "tokenizer/compile/table_builder.h"

#include <algorithm>

namespace mote::tokenizer {
namespace {

// Fills a table of open addressing; tries larger ones until every entry is near its first slot.
template <typename Entry, typename Items, typename Hash, typename IsEmpty, typename Make>
std::vector<Entry> build_table(const Items& items, const Entry& empty, Hash hash, IsEmpty is_empty, Make make) {
  for (size_t count = items.size() + items.size() / 2 + 1;; count += count / 4 + 1) {
    std::vector<Entry> table(count, empty);
    bool fits = true;
    for (const auto& item : items) {
      size_t slot = first_slot(hash(item), count);
      size_t probes = 1;
      while (!is_empty(table[slot]) && ++probes < kMaxProbes) slot = slot + 1 == count ? 0 : slot + 1;
      fits = is_empty(table[slot]);
      if (!fits) break;
      table[slot] = make(item);
    }
    if (fits) return table;
  }
}

}  // namespace

Result<std::unique_ptr<fb::StringsT>> build_strings(const std::vector<std::string>& strings) {
  auto built = std::make_unique<fb::StringsT>();
  size_t num_bytes = 0;
  for (const std::string& text : strings) num_bytes += text.size();
  MOTE_REQUIRE(num_bytes < UINT32_MAX, Code::kInvalidTokenizer,
               "the vocabulary has %zu bytes of text: must be below 4 GiB", num_bytes);
  built->bytes.reserve(num_bytes);
  built->offsets.reserve(strings.size() + 1);
  built->offsets.push_back(0);
  for (const std::string& text : strings) {
    built->bytes.insert(built->bytes.end(), text.begin(), text.end());
    built->offsets.push_back(static_cast<uint32_t>(built->bytes.size()));
  }
  return built;
}

std::vector<fb::Slot> build_slots(const std::vector<std::string>& strings, const std::vector<uint32_t>& indices) {
  return build_table(
      indices, fb::Slot(0, 0), [&](uint32_t index) { return hash_string(strings[index]); },
      [](const fb::Slot& slot) { return slot.entry() == 0; },
      [&](uint32_t index) { return fb::Slot(static_cast<uint32_t>(hash_string(strings[index]) >> 32), index + 1); });
}

std::vector<fb::Merge> build_merges(const std::vector<fb::Merge>& merges) {
  return build_table(
      merges, fb::Merge(UINT32_MAX, UINT32_MAX, 0, -1),
      [](const fb::Merge& merge) { return hash_pair(merge.left(), merge.right()); },
      [](const fb::Merge& merge) { return merge.id() < 0; }, [](const fb::Merge& merge) { return merge; });
}

std::unique_ptr<fb::TrieT> build_trie(std::vector<std::pair<std::string, int32_t>> strings) {
  if (strings.empty()) return nullptr;
  std::stable_sort(strings.begin(), strings.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  auto trie = std::make_unique<fb::TrieT>();
  struct Range {
    size_t begin;
    size_t end;
  };
  // The nodes of one depth are the ranges of strings that share so many bytes.
  std::vector<Range> nodes{{0, strings.size()}};
  for (size_t depth = 0; !nodes.empty(); ++depth) {
    std::vector<Range> children;
    for (Range node : nodes) {
      int32_t value = -1;
      while (node.begin < node.end && strings[node.begin].first.size() == depth) value = strings[node.begin++].second;
      trie->values.push_back(value);
      trie->first_edges.push_back(static_cast<uint32_t>(trie->labels.size()));
      while (node.begin < node.end) {
        const char label = strings[node.begin].first[depth];
        size_t end = node.begin;
        while (end < node.end && strings[end].first[depth] == label) ++end;
        trie->labels.push_back(static_cast<uint8_t>(label));
        children.push_back({node.begin, end});
        node.begin = end;
      }
    }
    nodes = std::move(children);
  }
  trie->first_edges.push_back(static_cast<uint32_t>(trie->labels.size()));
  return trie;
}

}  // namespace mote::tokenizer
