// The library that this build was linked with: CMake's MOTE_XNNPACK.
#include "backends/xnnpack/library.h"

using namespace mote::xnnpack;  // api.h's names of what the library takes

extern "C" {
#define X(name, parameters) XnnStatus xnn_##name parameters;
MOTE_XNNPACK_FUNCTIONS(X)
#undef X
Threadpool* pthreadpool_create(size_t num_threads);
void pthreadpool_destroy(Threadpool*);
// Null in a library that lacks them.
[[gnu::weak]] Threadpool* pthreadpool_create_v2(const Executor*, void* context, size_t max_num_threads);
[[gnu::weak]] void pthreadpool_release_executor_threads(Threadpool*);
}

namespace mote::xnnpack {

Result<Functions> find_functions() {
  Functions found;
  found.library = "the XNNPACK of this build";
#define X(name, parameters) found.api.name = xnn_##name;
  MOTE_XNNPACK_FUNCTIONS(X)
#undef X
  found.api.pthreadpool_create = pthreadpool_create;
  found.api.pthreadpool_destroy = pthreadpool_destroy;
  found.api.pthreadpool_create_v2 = pthreadpool_create_v2;
  found.api.pthreadpool_release_executor_threads = pthreadpool_release_executor_threads;
  return found;
}

}  // namespace mote::xnnpack
