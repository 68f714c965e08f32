// An op: its contract (check), its working memory (scratch_bytes), its kernel (run), its rule for rows (token_axis) and
// its cost. docs/ops.md lists them all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "kernels/state.h"
#include "kernels/tensor.h"
#include "kernels/thread_pool.h"
#include "kernels/token_axis.h"

namespace mote {

// An attribute for one call, its Dims already evaluated for the call's T.
struct Attribute {
  std::string_view name;
  std::span<const int64_t> integers;
  std::span<const double> numbers;
  std::string_view text;
};

// What a state slot looks like before a session has made one; enough for `check`.
struct StateShape {
  bool is_kv_cache = false;
  int32_t num_heads = 0;
  int32_t head_dim = 0;
  int32_t value_head_dim = 0;
  int32_t window = 0;
  int32_t stride = 1;
  Tensor recurrent;  // sizes only
};

inline constexpr size_t kParamsBytes = 288;
inline constexpr int64_t kMaximaBlock = 64;  // elements that share a maximum: see KernelContext::maxima

inline int64_t num_maxima(int64_t width) { return (width + kMaximaBlock - 1) / kMaximaBlock; }

class PackedWeights;

// What an op with a recurrent state records of a token (RecurrentState::rows).
struct RecurrentRows {
  size_t state = 0;
  int64_t row_floats = 0;
};

// One instruction with its operands for one T. The executor fills inputs (sizes and strides known, data set before run)
// and outputs (the sizes that the file declares, contiguous strides).
struct Call {
  std::span<const Tensor* const> inputs;  // nullptr: optional input that is absent
  std::span<Tensor* const> outputs;
  std::span<const Attribute> attributes;
  std::span<const StateShape> state_shapes;
  PackedWeights* packed_weights = nullptr;  // the program's, for kernels that cannot read a weight as the file has it
  int64_t view_offset_bytes = 0;            // views: set by check
  alignas(16) std::byte params[kParamsBytes];  // check writes what run needs (a trivially copyable struct)

  const Attribute* find(std::string_view name) const;
  Result<int64_t> integer(std::string_view name) const;  // errors name the attribute
  Result<double> number(std::string_view name) const;
  Result<std::string_view> text(std::string_view name) const;

  template <typename T> T& make_params() {
    static_assert(sizeof(T) <= kParamsBytes && std::is_trivially_copyable_v<T>);
    return *new (params) T();
  }
  template <typename T> const T& get_params() const { return *std::launder(reinterpret_cast<const T*>(params)); }
};

struct KernelContext {
  ThreadPool* threads = nullptr;
  std::span<std::byte> scratch;               // at least scratch_bytes(call, num_threads), 64-byte aligned
  std::span<const SequenceStates> sequences;  // whose tokens, in this order, are those of the call
  // [rows, num_maxima(width)], where an op with finds_maxima writes the largest of every kMaximaBlock elements of each
  // row of outputs[0]; a NaN counts as -infinity. nullptr: nobody needs them.
  float* maxima = nullptr;
  std::span<std::byte> adapter_memory{};  // adapter_memory_bytes(sequences, num_threads), 64-byte aligned
  // Memory does not hold the weights: an op that reads some of a stack asks for them first.
  bool reads_ahead = false;
};

// Memory that an instruction must read or write at least once, and multiply-accumulates.
struct Cost {
  int64_t bytes = 0;
  int64_t macs = 0;
};

// Every operand read or written once, no products.
Cost operand_cost(const Call& call, const KernelContext& context);

struct Op {
  std::string_view name;
  bool is_view =
      false;  // outputs[0] shares inputs[0]'s storage: check sets its strides and view_offset_bytes; run is nullptr

  // Checks count, dtypes, ranks, sizes, layout and attributes for this T, fills call.params, and requires that each
  // output has the dtype and sizes that the op computes (for views: sets the output's strides). Everything that could
  // make run read or write out of bounds is refused here, so that run checks only data: ids and indices. Messages name
  // the operand, not the op: the executor puts the instruction in front.
  Status (*check)(Call& call) = nullptr;
  size_t (*scratch_bytes)(const Call& call, int num_threads) = nullptr;  // nullptr: none
  Status (*run)(const Call& call, KernelContext& context) = nullptr;
  // The rule for rows (token_axis.h). It says nothing of states: an op that has one keeps sequences apart itself.
  // nullptr: a row may depend on any token of the call.
  OutputAxis (*token_axis)(const SymbolicCall& call) = nullptr;
  // For the profiler, after the instruction has run. Cost: a few dozen operations, no allocation.
  Cost (*cost)(const Call& call, const KernelContext& context) = operand_cost;
  bool finds_maxima = false;  // run fills context.maxima if it is not nullptr
  // For ops that follow SequenceStates::recurrent: what they record, and the part of `run` before the first token: the
  // states are read from the call's source and brought through its rows. nullptr: the op's state only moves on.
  RecurrentRows (*recurrent_rows)(const Call& call) = nullptr;
  Status (*replay)(const Call& call, KernelContext& context) = nullptr;
};

// Registration happens before main; lookup is read-only afterwards. Of two ops of one name the first stays, and
// check_ops reports it later, because an error before main would reach nobody.
void register_op(const Op& op);
const Op* find_op(std::string_view name);
std::vector<const Op*> all_ops();  // sorted by name
Status check_ops();                // kInternal naming an op that was registered twice

struct OpRegistration {
  explicit OpRegistration(const Op& op) { register_op(op); }
};

#define MOTE_REGISTER_OP(...)                                                           \
  static const ::mote::OpRegistration MOTE_CONCAT(mote_op_registration_, __COUNTER__) { \
    ::mote::Op { __VA_ARGS__ }                                                          \
  }

}  // namespace mote
