#include "kernels/state.h"

namespace mote {

int64_t kv_row_bytes(KvType type, int32_t width) {
  const int64_t elements = width < 0 ? 0 : width;
  const int64_t scales = (elements + kKvGroup - 1) / kKvGroup * 4;
  switch (type) {
    case KvType::kFloat32: return elements * 4;
    case KvType::kFloat16: return elements * 2;
    case KvType::kInt8: return (elements + 3) / 4 * 4 + scales;
    case KvType::kInt4: return ((elements + 1) / 2 + 3) / 4 * 4 + scales;
  }
  return 0;
}

}  // namespace mote
