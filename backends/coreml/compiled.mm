#import "backends/coreml/compiled.h"

#include "backends/assets/apple.h"
#include "backends/coreml/arrays.h"
#include "base/crc32.h"
#include "base/kept_file.h"
#include "base/log.h"
#include "base/open_file.h"

namespace mote::coreml {

Result<Compiled> Compiled::of(const std::string& package, const std::string& cache_prefix, const std::string& sha256) {
  Compiled compiled;
  compiled.package_ = package;
  if (!cache_prefix.empty()) {
    const std::string identity = assets::system_build() + "; " + sha256;
    compiled.kept_ = cache_prefix + format(".coreml-%08x.mlmodelc", crc32(std::as_bytes(std::span(identity))));
    const std::optional<FileInfo> info = info_of_name(compiled.kept_);
    compiled.was_found_ =
        info && info->kind == FileKind::kFolder && require_trusted_owner(compiled.kept_, *info, std::nullopt).ok();
  }
  if (compiled.was_found_) {
    compiled.url_ = [NSURL fileURLWithPath:text_of(compiled.kept_)];
    compiled.is_kept_ = true;
  } else {
    MOTE_RETURN_IF_ERROR(compiled.compile());
  }
  return compiled;
}

Compiled::Compiled(Compiled&& other) noexcept
    : package_(std::move(other.package_)),
      kept_(std::move(other.kept_)),
      url_(other.url_),
      was_found_(other.was_found_),
      is_kept_(other.is_kept_) {
  other.url_ = nil;
}

Compiled::~Compiled() {
  if (url_ != nil && !is_kept_) [NSFileManager.defaultManager removeItemAtURL:url_ error:nil];
}

Status Compiled::renew() {
  [NSFileManager.defaultManager removeItemAtURL:url_ error:nil];
  was_found_ = is_kept_ = false;
  return compile();
}

// Another process may have kept the same meanwhile: then this one's is used and removed.
Status Compiled::compile() {
  NSError* error = nil;
  url_ = [MLModel compileModelAtURL:[NSURL fileURLWithPath:text_of(package_)] error:&error];
  if (url_ == nil) return error_of("compile the package", error);
  if (kept_.empty()) return {};
  NSURL* kept = [NSURL fileURLWithPath:text_of(kept_)];
  is_kept_ = [NSFileManager.defaultManager moveItemAtURL:url_ toURL:kept error:&error];
  if (is_kept_) {
    url_ = kept;
  } else {
    const Status status = error_of("keep the compiled package", error);
    MOTE_LOG_LINE(kInfo, "coreml: %s", status.message().c_str());
  }
  return {};
}

}  // namespace mote::coreml
