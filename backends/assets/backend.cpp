#include "backends/assets/backend.h"

#include <new>

#include "backends/assets/trial.h"

namespace mote::assets {
namespace {

// The asset of a file's parts, and what is known of it on this device.
struct Found {
  Parts parts;
  AssetFolder folder;
  Tried tried;

  static Result<Found> of(const AssetKind& kind, AssetLibrary& library, const DelegateSource& source) {
    MOTE_ASSIGN(Parts parts, Parts::verify(source, kind));
    MOTE_ASSIGN(AssetFolder folder, AssetFolder::find(source, parts.functions.front(), kind));
    MOTE_ASSIGN(Tried tried, Tried::of(kind, library, source, folder, parts));
    return Found{std::move(parts), std::move(folder), std::move(tried)};
  }
};

Status no_memory(const DelegateSource& source) {
  return {Code::kOutOfMemory, source.parts.front().place + ": no memory for an asset's parts"};
}

}  // namespace

Status AssetBackend::check_device() const { return library()->check_device(); }

std::string AssetBackend::why_not(const DelegateSource& source) const try {
  if (const Status status = check_device(); !status.ok()) return status.message();
  const Result<Found> found = Found::of(kind_, *library(), source);
  return found.ok() ? found->tried.why_the_cpu(found->tried.read()) : found.status().message();
} catch (const std::bad_alloc&) { return no_memory(source).message(); }

std::string AssetBackend::findings(const DelegateSource& source) const try {
  const Result<Found> found = Found::of(kind_, *library(), source);
  return found.ok() ? found->tried.read().text_for(found->tried.device) : std::string();
} catch (const std::bad_alloc&) { return {}; }

Status AssetBackend::check(const DelegateSource& source) const try {
  MOTE_ASSIGN(const Found found, Found::of(kind_, *library(), source));
  return found.tried.check(found.tried.read());
} catch (const std::bad_alloc&) { return no_memory(source); }

Result<std::shared_ptr<const DelegateProgram>> AssetBackend::load(DelegateSource source) const try {
  MOTE_ASSIGN(const Found found, Found::of(kind_, *library(), source));
  MOTE_ASSIGN(auto program, open_tried(found.tried, library(), source, found.folder, found.parts));
  const std::string slower = source.is_choice ? found.tried.why_the_cpu(found.tried.read()) : "";
  MOTE_REQUIRE(slower.empty(), Code::kUnsupportedBackend, "%s", slower.c_str());
  return program;
} catch (const std::bad_alloc&) { return no_memory(source); }

}  // namespace mote::assets
