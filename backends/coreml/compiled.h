// Packages compiled by Core ML, kept beside the model for a build of the system.
#pragma once

#import <Foundation/Foundation.h>

#include <string>

#include "base/status.h"

namespace mote::coreml {

// A compiled package, which is removed with this unless it is kept.
class Compiled {
 public:
  // What an earlier load kept, or else the package compiled now. cache_prefix: how the paths of what is kept begin;
  // empty: nowhere   sha256: of the package. Errors: what Core ML says.
  static Result<Compiled> of(const std::string& package, const std::string& cache_prefix, const std::string& sha256);
  Compiled(Compiled&& other) noexcept;
  Compiled& operator=(Compiled&&) = delete;
  ~Compiled();

  NSURL* url() const { return url_; }
  bool was_found() const { return was_found_; }
  // Removes what an earlier load kept, and compiles again.
  Status renew();

 private:
  Compiled() = default;
  Status compile();

  std::string package_, kept_;
  NSURL* url_ = nil;
  bool was_found_ = false, is_kept_ = false;
};

}  // namespace mote::coreml
