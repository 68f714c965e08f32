// A verified graph as XNNPACK's objects.
#pragma once

#include <memory>
#include <vector>

#include "backends/xnnpack/graph.h"
#include "backends/xnnpack/packed_weights.h"

namespace mote::xnnpack {

// kOutOfMemory, or kInvalidProgram for what XNNPACK refuses: "cannot <action>: <its status>".
Status status_of(XnnStatus status, const char* action);

struct RuntimeDeleter {
  const Api* api = nullptr;
  void operator()(Runtime* runtime) const { api->delete_runtime(runtime); }
};
using RuntimeHandle = std::unique_ptr<Runtime, RuntimeDeleter>;

struct WorkspaceDeleter {
  const Api* api = nullptr;
  void operator()(Workspace* workspace) const { api->release_workspace(workspace); }
};
using WorkspaceHandle = std::unique_ptr<Workspace, WorkspaceDeleter>;

Result<WorkspaceHandle> make_workspace(const Api& api);

// Ids of external values are the indices of Graph.values.
//   tensors: an element each value; see PackedWeights.add
//   tokens: sizes that the runtime starts with; they change when it is reshaped
// Thread safety: any thread, one at a time inside.
Result<RuntimeHandle> make_runtime(const Api& api, const Graph& graph, const std::vector<StaticTensor>& tensors,
                                   int64_t tokens, WeightsCacheProvider* provider, Workspace* workspace,
                                   Threadpool* threadpool);

}  // namespace mote::xnnpack
