#include "kernels/support/token_axes.h"

namespace mote {

OutputAxis broadcast_axis(const SymbolicCall& call) {
  TokenAxis result;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.axis(i).exists()) continue;
    const TokenAxis moved = call.axis(i).at(call.axis(i).dim + call.output_rank() - call.rank(i));
    if (result.exists() && !(result == moved)) return kMixesTokens;
    result = moved;
  }
  // No input has tokens; if the output does, each of them gets the same row.
  return result.exists() ? OutputAxis(result) : axis_of(call.output);
}

OutputAxis same_axis(const SymbolicCall& call) {
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    if (!(call.axis(i) == call.axis(0))) return kMixesTokens;
  }
  return call.axis(0);
}

OutputAxis along_axis(const SymbolicCall& call) {
  if (!call.same_for_all_tokens(1)) return kMixesTokens;
  const TokenAxis x = call.axis(0);
  return x.exists() && x.dim == call.integer("dim", -1) ? OutputAxis(kMixesTokens) : x;
}

OutputAxis removed_axis(const SymbolicCall& call, std::string_view name) {
  const TokenAxis from = call.axis(0);
  const SymbolicCall::Attribute* dims = call.find(name);
  if (!from.exists() || dims == nullptr) return from;
  int removed = 0;
  for (const Dim& dim : dims->dims) {
    if (dim.constant == from.dim) return kMixesTokens;
    removed += dim.constant < from.dim;
  }
  return from.at(from.dim - removed);
}

OutputAxis reduced_axis(const SymbolicCall& call) {
  const OutputAxis removed = removed_axis(call, call.find("dims") != nullptr ? "dims" : "dim");
  return !removed.has_value() || call.integer("keepdim", 0) == 0 ? removed : call.axis(0);
}

OutputAxis row_axis(const SymbolicCall& call) {
  const TokenAxis x = call.axis(0);
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    if (call.axis(i).exists() && !(call.axis(i) == x)) return kMixesTokens;
  }
  return x.exists() && x.dim == call.rank(0) - 1 ? OutputAxis(kMixesTokens) : x;
}

OutputAxis tokens_at(const SymbolicCall& call, std::initializer_list<int> dims) {
  size_t input = 0;
  for (const int dim : dims) {
    const TokenAxis axis = call.axis(input++);
    if (axis.exists() && !(axis == TokenAxis{dim})) return kMixesTokens;
  }
  return call.axis(0).exists() && call.same_for_all_tokens(input) ? OutputAxis(TokenAxis{1}) : kMixesTokens;
}

}  // namespace mote
