// Where a session has the logits after its last id, and what it found of them.
#include "runner/session/session.h"

namespace mote {

std::span<const float> Session::row_of(std::span<const float> rows) const {
  const size_t width = rows.size() / position_.row().call.num_rows();
  return rows.subspan(position_.row().index * width, width);
}

Result<std::span<const float>> Session::returned_logits() {
  MOTE_RETURN_IF_ERROR(executor().read_output(position_.row().call.method));
  return row_of(executor().output(position_.row().call.method, 0));
}

Result<std::span<const float>> Session::wanted_logits() {
  const bool is_enough = wanted_largest_ > 0 && !largest().empty();
  return is_enough ? std::span<const float>() : returned_logits();
}

std::span<const LargestElement> Session::largest() const {
  if (!position_.has_row()) return {};
  const std::span<const LargestElement> all = executor().largest(position_.row().call.method);
  const size_t count = all.size() / position_.row().call.num_rows();
  return all.subspan(position_.row().index * count, count);
}

std::span<const float> Session::logit_maxima() const {
  if (!position_.kept_logits().empty()) return {};
  return row_of(executor().maxima(position_.row().call.method));
}

std::span<const float> Session::hidden_state() const {
  if (!position_.kept_logits().empty()) return {};
  return row_of(executor().source(position_.row().call.method));
}

}  // namespace mote
