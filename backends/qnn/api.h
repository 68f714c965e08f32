// The part of the QNN C interface that is used, declared here because a library found at run time comes without
// headers. Layouts are those of its 64-bit binaries since interface 2.10; names are ours.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>

namespace mote::qnn {

using ErrorHandle = uint64_t;
inline constexpr ErrorHandle kSuccess = 0;

// Objects of the library.
using Handle = void*;

enum class DataType : uint32_t {
  kInt32 = 0x0032,
  kUint32 = 0x0132,
  kFloat16 = 0x0216,
  kFloat32 = 0x0232,
  kSignedFixed8 = 0x0308,
  kSignedFixed32 = 0x0332,
  kUnsignedFixed8 = 0x0408,
  kUnsignedFixed16 = 0x0416,
  kBool8 = 0x0508
};

enum class TensorType : uint32_t { kAppWrite = 0, kAppRead = 1, kNative = 3, kStatic = 4 };
enum class TensorMemory : uint32_t { kRaw = 0 };
enum class Definition : uint32_t { kDefined = 1, kUndefined = 0x7fffffff };
enum class Encoding : uint32_t {
  kScaleOffset = 0,
  kAxisScaleOffset = 1,
  kBlockwiseExpansion = 5,
  kUndefined = 0x7fffffff
};

// A code c is scale * (c + offset).
struct ScaleOffset {
  float scale;
  int32_t offset;
};

struct AxisScaleOffset {
  int32_t axis;
  uint32_t num_scales;
  ScaleOffset* scales;
};

// Scales of blocks along the other axis: a whole number, of at most block_scale_bits, times the channel's scale.
struct BlockwiseExpansion {
  int32_t axis;
  ScaleOffset* scales;  // of channels
  uint32_t blocks_per_axis;
  uint32_t block_scale_bits;
  uint32_t block_scale_storage;  // 0: bytes
  uint8_t* block_scales;         // [channels, blocks]
};

inline constexpr uint32_t kBlockScaleBits = 4;

struct QuantizeParams {
  Definition definition;
  Encoding encoding;
  union {
    ScaleOffset scale_offset;
    AxisScaleOffset axis;
    BlockwiseExpansion* blocks;
    uint64_t room[4];
  };
};

struct ClientBuffer {
  void* data;
  uint32_t size;
};

struct TensorV1 {
  uint32_t id;
  const char* name;
  TensorType type;
  uint32_t data_format;  // 0: dense
  DataType data_type;
  QuantizeParams quantize;
  uint32_t rank;
  uint32_t* dimensions;
  TensorMemory memory;
  ClientBuffer buffer;
};

// version 1 of a union whose largest member is version 2.
struct QnnTensor {
  uint32_t version;
  TensorV1 v1;
  uint64_t room[3];
};

struct Scalar {
  DataType data_type;
  union {
    float as_float;
    uint32_t as_uint;
    uint8_t as_bool;
    uint64_t room;
  };
};

enum class ParamType : uint32_t { kScalar = 0, kTensor = 1 };

struct Param {
  ParamType type;
  const char* name;
  union {
    Scalar scalar;
    QnnTensor tensor;
  };
};

struct OpConfig {
  uint32_t version;  // 1
  const char* name;
  const char* package;
  const char* type;
  uint32_t num_params;
  Param* params;
  uint32_t num_inputs;
  QnnTensor* inputs;
  uint32_t num_outputs;
  QnnTensor* outputs;
};

// Of a graph, a context or a device: option 0 is one of the backend's own.
struct Config {
  uint32_t option;
  void* custom;
};

// A backend's own option of a graph, a context or a device. What the option is lies at 4 or at 8, by the version: both
// are written.
struct CustomConfig {
  uint32_t option;
  uint32_t value[5];
};
inline constexpr uint32_t kGraphPrecision = 2, kFloat16Precision = 1;
inline constexpr uint32_t kDeviceSoc = 0;
inline constexpr uint32_t kContextSharesWeights = 1;

struct Version {
  uint32_t major, minor, patch;
};

inline constexpr uint32_t kLogErrors = 1;
using LogCallback = void (*)(const char* format, uint32_t level, uint64_t time, va_list arguments);

// The function table, in order; later versions add slots at the end.
struct Functions {
  Handle property_has_capability;
  ErrorHandle (*backend_create)(Handle log, const Config** configs, Handle* backend);
  Handle backend_set_config;
  Handle backend_get_api_version;
  ErrorHandle (*backend_get_build_id)(const char** id);
  Handle backend_register_op_package;
  Handle backend_get_supported_operations;
  ErrorHandle (*backend_validate_op_config)(Handle backend, OpConfig op);
  ErrorHandle (*backend_free)(Handle backend);
  ErrorHandle (*context_create)(Handle backend, Handle device, const Config** configs, Handle* context);
  Handle context_set_config;
  ErrorHandle (*context_get_binary_size)(Handle context, uint64_t* size);
  ErrorHandle (*context_get_binary)(Handle context, void* to, uint64_t size, uint64_t* written);
  ErrorHandle (*context_create_from_binary)(Handle backend, Handle device, const Config** configs, const void* binary,
                                            uint64_t size, Handle* context, Handle profile);
  ErrorHandle (*context_free)(Handle context, Handle profile);
  ErrorHandle (*graph_create)(Handle context, const char* name, const Config** configs, Handle* graph);
  Handle graph_create_subgraph;
  Handle graph_set_config;
  ErrorHandle (*graph_add_node)(Handle graph, OpConfig op);
  ErrorHandle (*graph_finalize)(Handle graph, Handle profile, Handle signal);
  ErrorHandle (*graph_retrieve)(Handle context, const char* name, Handle* graph);
  ErrorHandle (*graph_execute)(Handle graph, const QnnTensor* inputs, uint32_t num_inputs, QnnTensor* outputs,
                               uint32_t num_outputs, Handle profile, Handle signal);
  Handle graph_execute_async;
  Handle tensor_create_context_tensor;
  ErrorHandle (*tensor_create_graph_tensor)(Handle graph, QnnTensor* tensor);
  ErrorHandle (*log_create)(LogCallback callback, uint32_t level, Handle* log);
  Handle log_set_level;
  ErrorHandle (*log_free)(Handle log);
  Handle profiles[7];
  Handle memory[2];
  Handle device_get_platform_info;
  Handle device_free_platform_info;
  Handle device_get_infrastructure;
  ErrorHandle (*device_create)(Handle log, const Config** configs, Handle* device);
  Handle device_set_config;
  Handle device_get_info;
  ErrorHandle (*device_free)(Handle device);
};

struct Provider {
  uint32_t backend_id;
  const char* name;
  Version core;
  Version backend;
  Functions functions;
};

using GetProviders = ErrorHandle (*)(const Provider*** providers, uint32_t* count);

static_assert(sizeof(void*) != 8 || (sizeof(QuantizeParams) == 40 && sizeof(TensorV1) == 112 &&
                                     offsetof(TensorV1, quantize) == 32 && offsetof(TensorV1, buffer) == 96));
static_assert(sizeof(void*) != 8 || (sizeof(BlockwiseExpansion) == 40 && sizeof(AxisScaleOffset) == 16));
static_assert(sizeof(void*) != 8 || (sizeof(QnnTensor) == 144 && offsetof(QnnTensor, v1) == 8 && sizeof(Param) == 160 &&
                                     sizeof(Scalar) == 16 && sizeof(OpConfig) == 80));
static_assert(sizeof(void*) != 8 ||
              (offsetof(Provider, functions) == 40 && offsetof(Functions, device_free) == 43 * sizeof(void*)));

}  // namespace mote::qnn
