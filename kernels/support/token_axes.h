// Rules for rows that several ops share.
#pragma once

#include <initializer_list>

#include "kernels/token_axis.h"

namespace mote {

// Elementwise; dimensions are aligned at the last.
OutputAxis broadcast_axis(const SymbolicCall& call);
// All inputs and the output alike.
OutputAxis same_axis(const SymbolicCall& call);
// Each line along the attribute `dim` of inputs[0] on its own.
OutputAxis along_axis(const SymbolicCall& call);
// inputs[0] without the dimensions that the attribute names, of which the tokens' may be none.
OutputAxis removed_axis(const SymbolicCall& call, std::string_view name);
// A reduction over the attribute `dims`, or else `dim`.
OutputAxis reduced_axis(const SymbolicCall& call);
// Each row x [.., K] on its own; what else there is for each row has the leading dimensions of x.
OutputAxis row_axis(const SymbolicCall& call);
// Inputs that have tokens at these dimensions, one behind the other, none further; the outputs' is dimension 1.
OutputAxis tokens_at(const SymbolicCall& call, std::initializer_list<int> dims);

}  // namespace mote
