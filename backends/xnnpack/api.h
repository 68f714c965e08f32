// The part of XNNPACK's C API that is used, declared here because a library found at run time comes without headers.
// Where the real xnnpack.h is installed, tests/backends/xnnpack compares these declarations with it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mote::xnnpack {

struct Subgraph;
struct Runtime;
struct Workspace;
struct Threadpool;

enum class XnnStatus : int { kSuccess = 0, kUnsupportedHardware = 5, kOutOfMemory = 6 };

// These numbers are the same in every version of XNNPACK that has the type.
enum class Datatype : int {
  kFloat32 = 1,
  kFloat16 = 2,
  kChannelwiseInt8 = 6,
  kChannelwiseInt4 = 8,
  kDynamicInt8 = 9,
  kBlockwiseInt4 = 12
};

// Versions up to February 2025 number these differently, so a library is tested for the numbers before it is used
// (library.h).
enum class Unary : int {
  kAbs = 0,
  kApproximateGelu,
  kBankersRounding,
  kCeiling,
  kClamp,
  kConvert,
  kCosine,
  kElu,
  kExp,
  kFloor,
  kGelu,
  kHardSwish,
  kLeakyRelu,
  kLog,
  kNegate,
  kReciprocalSquareRoot,
  kSigmoid,
  kSine,
  kSquareRoot,
  kSquare,
  kTanh,
};

enum class Binary : int { kAdd = 0, kSubtract, kMultiply, kDivide, kMaximum, kMinimum };

union UnaryParams {
  struct {
    float min, max;
  } clamp;
  struct {
    float alpha;
  } elu;
  struct {
    float negative_slope;
  } leaky_relu;
};

struct BinaryParams {
  double output_min;
  double output_max;
};

struct ExternalValue {
  uint32_t id;
  void* data;
};

inline constexpr size_t kMaxTensorDims = 6;
inline constexpr size_t kExtraBytes = 16;  // that may be read beyond the end of a tensor
inline constexpr uint32_t kInvalidValueId = UINT32_MAX;
inline constexpr uint32_t kExternalInput = 1;
inline constexpr uint32_t kExternalOutput = 2;
inline constexpr uint32_t kKeepDims = 0x40;
inline constexpr uint32_t kDontSpinWorkers = 0x10;

struct WeightsCacheKey {
  uint32_t seed;
  const void* kernel;
  const void* bias;
  uint32_t fingerprint_id;  // newer versions only: not to be read
};

struct WeightsCacheProvider {
  void* context;
  size_t (*look_up)(void* context, const WeightsCacheKey* key);
  void* (*reserve_space)(void* context, size_t bytes);
  size_t (*look_up_or_insert)(void* context, const WeightsCacheKey* key, void* data, size_t bytes);
  bool (*is_finalized)(void* context);
  void* (*offset_to_addr)(void* context, size_t offset);
  XnnStatus (*delete_cache)(void* context);
  XnnStatus (*alias_data)(void* context, void* alias, void* original);  // newer versions only
};

// pthreadpool_executor of pthreadpool's newer versions.
struct Executor {
  int (*num_threads)(void* context);
  void (*schedule)(void* context, void* task_context, void (*task)(void* task_context));
};

// X(name, parameters): functions that return a status.
#define MOTE_XNNPACK_FUNCTIONS(X)                                                                                     \
  X(initialize, (const void* allocator))                                                                              \
  X(create_subgraph, (uint32_t external_value_ids, uint32_t flags, Subgraph** out))                                   \
  X(delete_subgraph, (Subgraph*))                                                                                     \
  X(define_tensor_value, (Subgraph*, Datatype, size_t num_dims, const size_t* dims, const void* data,                 \
                          uint32_t external_id, uint32_t flags, uint32_t* id))                                        \
  X(define_dynamically_quantized_tensor_value,                                                                        \
    (Subgraph*, Datatype, size_t num_dims, size_t num_nonbatch_dims, const size_t* dims, uint32_t external_id,        \
     uint32_t flags, uint32_t* id))                                                                                   \
  X(define_channelwise_quantized_tensor_value_v2,                                                                     \
    (Subgraph*, Datatype, int32_t zero_point, const float* scale, size_t num_dims, size_t channel_dim,                \
     const size_t* dims, const void* data, uint32_t external_id, uint32_t flags, uint32_t* id))                       \
  X(define_blockwise_quantized_tensor_value,                                                                          \
    (Subgraph*, Datatype, int32_t zero_point, const uint16_t* scale, size_t num_dims, size_t channel_dim,             \
     size_t block_size, const size_t* dims, const void* data, uint32_t external_id, uint32_t flags, uint32_t* id))    \
  X(define_unary, (Subgraph*, Unary, const UnaryParams*, uint32_t input, uint32_t output, uint32_t flags))            \
  X(define_binary, (Subgraph*, Binary, const BinaryParams*, uint32_t a, uint32_t b, uint32_t output, uint32_t flags)) \
  X(define_fully_connected, (Subgraph*, float output_min, float output_max, uint32_t input, uint32_t filter,          \
                             uint32_t bias, uint32_t output, uint32_t flags))                                         \
  X(define_batch_matrix_multiply, (Subgraph*, uint32_t a, uint32_t b, uint32_t output, uint32_t flags))               \
  X(define_softmax, (Subgraph*, uint32_t input, uint32_t output, uint32_t flags))                                     \
  X(define_static_mean,                                                                                               \
    (Subgraph*, size_t num_axes, const size_t* axes, uint32_t input, uint32_t output, uint32_t flags))                \
  X(define_static_reshape,                                                                                            \
    (Subgraph*, size_t num_dims, const size_t* shape, uint32_t input, uint32_t output, uint32_t flags))               \
  X(define_static_transpose,                                                                                          \
    (Subgraph*, size_t num_dims, const size_t* axes, uint32_t input, uint32_t output, uint32_t flags))                \
  X(define_static_slice_v3, (Subgraph*, size_t num_dims, const int64_t* begins, const int64_t* ends,                  \
                             const int64_t* strides, uint32_t input, uint32_t output, uint32_t flags))                \
  X(define_concatenate,                                                                                               \
    (Subgraph*, int32_t axis, size_t num_inputs, const uint32_t* inputs, uint32_t output, uint32_t flags))            \
  X(create_workspace, (Workspace * *out))                                                                             \
  X(release_workspace, (Workspace*))                                                                                  \
  X(create_runtime_v4, (Subgraph*, WeightsCacheProvider*, Workspace*, Threadpool*, uint32_t flags, Runtime** out))    \
  X(delete_runtime, (Runtime*))                                                                                       \
  X(reshape_external_value, (Runtime*, uint32_t id, size_t num_dims, const size_t* dims))                             \
  X(get_external_value_shape, (Runtime*, uint32_t id, size_t* num_dims, size_t* dims))                                \
  X(reshape_runtime, (Runtime*))                                                                                      \
  X(setup_runtime_v2, (Runtime*, size_t num_values, const ExternalValue* values))                                     \
  X(invoke_runtime, (Runtime*))

// XNNPACK's functions by their names without xnn_.
struct Api {
#define X(name, parameters) XnnStatus(*name) parameters = nullptr;
  MOTE_XNNPACK_FUNCTIONS(X)
#undef X
  // pthreadpool's. create_v2 and release_executor_threads are missing in older versions.
  Threadpool* (*pthreadpool_create)(size_t num_threads) = nullptr;
  Threadpool* (*pthreadpool_create_v2)(const Executor*, void* context, size_t max_num_threads) = nullptr;
  void (*pthreadpool_release_executor_threads)(Threadpool*) = nullptr;
  void (*pthreadpool_destroy)(Threadpool*) = nullptr;
};

const char* status_name(XnnStatus status);

}  // namespace mote::xnnpack
