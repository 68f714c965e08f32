#include "tokenizer/model/piece_cache.h"

#include <atomic>

namespace mote::tokenizer {

uint32_t PieceCache::new_owner() {
  static std::atomic<uint32_t> last{0};
  return ++last;
}

}  // namespace mote::tokenizer
