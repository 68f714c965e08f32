#include "runner/templates/text_builder.h"

#include <algorithm>
#include <cstring>

namespace mote::jinja {

void TextBuilder::add(std::string_view text, bool is_marked) {
  if (text.empty()) return;
  if (text.size() > capacity_ - size_) {
    const size_t limit = arena_.budget().limits().max_output_bytes;
    if (text.size() > limit - std::min(size_, limit))
      MOTE_JINJA_FAIL("the template makes a text of more than %zu bytes", limit);
    const size_t wanted = std::max({size_ + text.size(), capacity_ + capacity_ / 2, size_t{64}});
    data_ = static_cast<char*>(arena_.grow(data_, capacity_, wanted));
    capacity_ = wanted;
  }
  std::memcpy(data_ + size_, text.data(), text.size());
  if (is_marked) {
    if (!marked_.empty() && marked_.back().second == size_) {
      marked_.back().second += text.size();
    } else {
      arena_.budget().take_memory(sizeof(marked_[0]) * 2);
      marked_.emplace_back(size_, size_ + text.size());
    }
  }
  size_ += text.size();
}

Text TextBuilder::finish() {
  if (size_ == 0) return {};
  if (marked_.empty()) return {data_, size_, nullptr};
  if (marked_.size() == 1 && marked_[0] == std::pair<size_t, size_t>(0, size_)) return {data_, size_, &kAllMarked};
  auto* ranges = arena_.make_array<MarkRange>(marked_.size());
  std::transform(marked_.begin(), marked_.end(), ranges,
                 [this](const auto& range) { return MarkRange{data_ + range.first, data_ + range.second}; });
  return {data_, size_, arena_.make<Marks>(Marks{ranges, marked_.size()})};
}

}  // namespace mote::jinja
