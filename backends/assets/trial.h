// An asset is tried on a device before it is trusted there.
#pragma once

#include <memory>
#include <string>

#include "backends/assets/asset_folder.h"
#include "backends/assets/delegate.h"
#include "backends/proof/trial.h"

namespace mote::assets {

// What a verdict on an asset is true for, and where it is kept.
struct Tried : proof::Tried {
  Units units;

  // Errors: kUnsupportedBackend for what the library does not take.
  static Result<Tried> of(const AssetKind& kind, AssetLibrary& library, const DelegateSource& source,
                          const AssetFolder& folder, const Parts& parts);
};

// Opens the asset and, unless that was done before on this device, replays the beginning of a sample that eager PyTorch
// recorded. What is found out is kept. Errors: kUnsupportedBackend for an asset that does not work here, now or before;
// kFileChanged; kOutOfMemory.
Result<std::shared_ptr<const DelegateProgram>> open_tried(const Tried& tried,
                                                          const std::shared_ptr<AssetLibrary>& library,
                                                          const DelegateSource& source, const AssetFolder& folder,
                                                          const Parts& parts);

}  // namespace mote::assets
