#include "backends/assets/backend.h"

#include <new>

#include "backends/assets/asset_folder.h"
#include "backends/assets/delegate.h"

namespace mote::assets {
namespace {

Status no_memory(const DelegateSource& source) {
  return {Code::kOutOfMemory, source.parts.front().place + ": no memory for an asset's parts"};
}

}  // namespace

Status AssetBackend::check_device() const { return library()->check_device(); }

std::string AssetBackend::why_not(const DelegateSource&) const { return {}; }

std::string AssetBackend::findings(const DelegateSource&) const { return {}; }

Status AssetBackend::check(const DelegateSource& source) const try {
  MOTE_ASSIGN(const Parts parts, Parts::verify(source, kind_));
  return AssetFolder::find(source, parts.functions.front(), kind_).status();
} catch (const std::bad_alloc&) { return no_memory(source); }

Result<std::shared_ptr<const DelegateProgram>> AssetBackend::load(DelegateSource source) const try {
  MOTE_ASSIGN(Parts parts, Parts::verify(source, kind_));
  MOTE_ASSIGN(const AssetFolder folder, AssetFolder::find(source, parts.functions.front(), kind_));
  MOTE_RETURN_IF_ERROR(folder.check_content(parts.functions.front(), source.progress));
  MOTE_ASSIGN(const Units units, library()->units());
  MOTE_ASSIGN(auto opened, OpenedAsset::open(library(), folder.path(), source.cache_prefix, std::move(parts.functions),
                                             std::move(parts.ports), units.wanted));
  return std::shared_ptr<const DelegateProgram>(std::make_shared<Program>(std::move(opened), source));
} catch (const std::bad_alloc&) { return no_memory(source); }

}  // namespace mote::assets
