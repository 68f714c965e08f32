// Rules for rows that several ops share.
#pragma once

#include <initializer_list>

#include "kernels/token_axis.h"

namespace mote {

// The rule of an elementwise op, whose inputs broadcast to the output (dimensions are aligned at the last).
OutputAxis broadcast_axis(const SymbolicCall& call);
// All inputs and the output have their tokens at the same place.
OutputAxis same_axis(const SymbolicCall& call);
// The op treats each line of inputs[0] along the attribute `dim` on its own, so `dim` must not be the tokens'.
OutputAxis along_axis(const SymbolicCall& call);
// The op removes from inputs[0] the dimensions that the attribute `name` lists, none of which may be the tokens'.
OutputAxis removed_axis(const SymbolicCall& call, std::string_view name);
// The op reduces over the dimensions of the attribute `dims`, or of `dim` if it has no `dims`.
OutputAxis reduced_axis(const SymbolicCall& call);
// The op treats each row of x = inputs[0] [.., K] on its own; another input that has tokens has them where x does.
OutputAxis row_axis(const SymbolicCall& call);
// inputs[0] has its tokens at dims[0]; inputs[i] has them at dims[i] or not at all (-1: never), those beyond `dims`
// never. The outputs have them at dimension 1.
OutputAxis tokens_at(const SymbolicCall& call, std::initializer_list<int> dims);

}  // namespace mote
