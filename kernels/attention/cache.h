// Rows of a KV cache as float32, and back.
#pragma once

#include <cstdint>

#include "kernels/state.h"

namespace mote {

// `width` floats as one row of a cache of this type.
void write_kv_row(KvType type, const float* from, int32_t width, void* row);

// The row as float32: itself for a float32 cache, else converted into `buffer`.
const float* read_kv_row(KvType type, const void* row, int32_t width, float* buffer);

}  // namespace mote
