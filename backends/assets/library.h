// What a vendor's runtime must be able to do with an asset.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/assets/reference.h"
#include "base/status.h"

namespace mote::assets {

// Contiguous elements of a port.
using Elements = std::vector<std::byte>;

// The states of one sequence, made and kept by the runtime; all are 0 at first.
class AssetStates {
 public:
  virtual ~AssetStates() = default;
  // The first `positions` of a cache, [heads, positions, width], or a whole recurrent state. Errors:
  // kUnsupportedBackend where the runtime gives none.
  virtual Result<Elements> read(const StatePort& port, int64_t positions) = 0;
  // As read; `elements` has that many bytes.
  virtual Status write(const StatePort& port, int64_t positions, const Elements& elements) = 0;
};

// An opened asset. Its calls are made one at a time, by any thread. Some may never return: the thread is then left to
// itself with what the call was given, and the asset and its states stay for as long.
class Asset {
 public:
  virtual ~Asset() = default;
  // Of all functions. Errors: kOutOfMemory, and what the runtime says, in a sentence.
  virtual Result<std::unique_ptr<AssetStates>> make_states(std::span<const StatePort> ports) = 0;
  // Computes a function: reads `inputs`, fills `outputs` and changes `states`, each in the reference's order. Errors:
  // what the runtime says, in a sentence.
  virtual Status predict(const Reference& function, std::span<const Elements> inputs, std::span<Elements> outputs,
                         AssetStates* states) = 0;
};

// Which of the device's processors compute, for vendors that leave the choice.
struct Units {
  std::string wanted;    // "" where there is no choice
  std::string slower{};  // those that `wanted` is compared with, to find out whether it was got; "": with none
};

class AssetLibrary {
 public:
  virtual ~AssetLibrary() = default;
  // Errors: kUnsupportedBackend saying what is missing.
  virtual Status check_device() = 0;
  // The device, the build of its system and the version of the runtime, which a verdict is true for.
  virtual std::string identity() = 0;
  // The device's name, for people.
  virtual std::string device_name() = 0;
  virtual Result<Units> units() { return Units{}; }
  // Compiles it if need be; `cache_prefix` is where files begin that it may keep, empty: nowhere. functions: of which
  // all are needed   units: one of those of units()
  virtual Result<std::shared_ptr<Asset>> open(const std::string& folder, const std::string& cache_prefix,
                                              std::span<const Reference> functions, const std::string& units) = 0;
  // How long it may take to compile an asset, and to compute a call; who takes longer is given up.
  virtual std::chrono::nanoseconds patience_to_open() const { return std::chrono::minutes(20); }
  virtual std::chrono::nanoseconds patience_to_compute() const { return std::chrono::minutes(1); }
};

}  // namespace mote::assets
