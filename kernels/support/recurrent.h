// What ops with a recurrent state share.
#pragma once

#include "kernels/support/contract.h"

namespace mote {

// The index of the state that the attribute `state` names, which must be a recurrent one of these sizes.
Result<size_t> expect_recurrent_state(const Call& call, std::span<const int64_t> sizes);

// The elements of the state of a sequence. Errors: kInternal where the session's tensor is not what the program
// declares.
Result<float*> recurrent_data(const Call& call, const SequenceStates& sequence, size_t state);

}  // namespace mote
