#include "runner/chat/context_window.h"

#include <algorithm>

namespace mote {

std::vector<int32_t> ContextWindow::fit(const std::vector<int32_t>& ids, int64_t context_length, int64_t keep) {
  const auto count = static_cast<int64_t>(ids.size());
  if (count <= context_length) {
    forgotten_ = 0;
    return ids;
  }
  const int64_t half = std::max<int64_t>((context_length - keep) / 2, 1);
  if (count - forgotten_ > context_length || count - forgotten_ - keep < 1) forgotten_ = count - keep - half;
  std::vector<int32_t> fitting(ids.begin(), ids.begin() + keep);
  fitting.insert(fitting.end(), ids.begin() + keep + forgotten_, ids.end());
  return fitting;
}

}  // namespace mote
