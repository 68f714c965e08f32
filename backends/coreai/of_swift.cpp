// Where Swift is linked in, the backend has it from the beginning.
#include "backends/coreai/runtime.h"

extern "C" const void* mote_coreai_runtime_of_swift(void);

namespace mote::coreai {
namespace {

[[maybe_unused]] const bool is_used =
    (mote_coreai_use(static_cast<const mote_coreai_runtime*>(mote_coreai_runtime_of_swift())), true);

}  // namespace
}  // namespace mote::coreai
