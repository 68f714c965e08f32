#include "kernels/support/recurrent.h"

#include <limits>

namespace mote {

Result<size_t> expect_recurrent_state(const Call& call, std::span<const int64_t> sizes) {
  MOTE_ASSIGN(const int64_t index, integer_in(call, "state", 0, std::numeric_limits<int32_t>::max()));
  const auto state = static_cast<size_t>(index);
  MOTE_REQUIRE(state < call.state_shapes.size(), Code::kInvalidProgram, "attribute 'state' = %zu: must be below %zu",
               state, call.state_shapes.size());
  MOTE_REQUIRE(!call.state_shapes[state].is_kv_cache, Code::kInvalidProgram,
               "attribute 'state' = %zu is a KV cache: must be a recurrent state", state);
  MOTE_RETURN_IF_ERROR(expect_sizes(call.state_shapes[state].recurrent, "the state", sizes));
  return state;
}

Result<float*> recurrent_data(const Call& call, const SequenceStates& sequence, size_t state) {
  MOTE_REQUIRE(state < sequence.recurrent_states.size(), Code::kInternal, "the session has no state %zu", state);
  const Tensor& tensor = sequence.recurrent_states[state].tensor;
  const Tensor& declared = call.state_shapes[state].recurrent;
  MOTE_REQUIRE((tensor.data != nullptr || tensor.num_elements() == 0) && tensor.rank == declared.rank &&
                   tensor.sizes == declared.sizes && tensor.is_contiguous(),
               Code::kInternal, "the session's state %zu has another shape than the program's", state);
  return tensor.as<float>();
}

}  // namespace mote
