// An opened asset with the deadlines of its calls.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/assets/library.h"

namespace mote::assets {

// Makes the calls of a vendor's runtime, one at a time, in threads that nobody waits for longer than the library says.
// One that did not answer is not asked again. Thread safety: any thread.
class OpenedAsset : public std::enable_shared_from_this<OpenedAsset> {
 public:
  // Errors: kUnsupportedBackend where the runtime does not open it or does not answer; what the library says.
  static Result<std::shared_ptr<OpenedAsset>> open(std::shared_ptr<AssetLibrary> library, const std::string& folder,
                                                   const std::string& cache_prefix, std::vector<Reference> functions,
                                                   std::vector<StatePort> ports, const std::string& units);

  const std::vector<Reference>& functions() const { return functions_; }
  const std::vector<StatePort>& ports() const { return ports_; }  // of all functions
  bool hangs() const { return hangs_; }

  // Errors of all: what the runtime says, a sentence; kInternal where it does not answer.
  Result<std::shared_ptr<AssetStates>> make_states();
  Result<std::vector<Elements>> predict(size_t function, std::vector<Elements> inputs,
                                        std::shared_ptr<AssetStates> states);
  Result<Elements> read(const std::shared_ptr<AssetStates>& states, size_t port, int64_t positions);
  Status write(const std::shared_ptr<AssetStates>& states, size_t port, int64_t positions, Elements elements);

 private:
  OpenedAsset() = default;
  template <typename T> Result<T> call(const std::function<Result<T>(OpenedAsset&)>& work);

  std::shared_ptr<AssetLibrary> library_;
  std::shared_ptr<Asset> asset_;
  std::vector<Reference> functions_;
  std::vector<StatePort> ports_;
  std::mutex calls_;
  std::atomic<bool> hangs_{false};
};

}  // namespace mote::assets
