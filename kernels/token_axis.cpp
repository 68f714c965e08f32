#include "kernels/token_axis.h"

#include <algorithm>

namespace mote {

OutputAxis axis_of(std::span<const Dim> shape) {
  TokenAxis axis;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim].tokens == 0) continue;
    if (axis.exists() || shape[dim].constant != 0) return kMixesTokens;
    axis = {static_cast<int>(dim), 1, shape[dim].tokens};
  }
  return axis;
}

bool SymbolicCall::same_for_all_tokens(size_t from) const {
  for (size_t i = from; i < inputs.size(); ++i) {
    if (axis(i).exists()) return false;
  }
  return true;
}

const SymbolicCall::Attribute* SymbolicCall::find(std::string_view name) const {
  const auto found = std::ranges::find(attributes, name, &Attribute::name);
  return found == attributes.end() ? nullptr : &*found;
}

int64_t SymbolicCall::integer(std::string_view name, int64_t otherwise) const {
  const Attribute* found = find(name);
  return found == nullptr || found->dims.empty() ? otherwise : found->dims[0].constant;
}

}  // namespace mote
