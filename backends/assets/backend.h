// A backend whose parts are functions of an asset beside the file. Each vendor registers one, with its library.
#pragma once

#include <memory>
#include <string_view>

#include "backends/assets/library.h"
#include "runner/program/delegate.h"

namespace mote::assets {

class AssetBackend : public Backend {
 public:
  explicit AssetBackend(const AssetKind& kind) : kind_(kind) {}

  std::string_view name() const override { return kind_.backend; }
  Status check_device() const override;
  std::string why_not(const DelegateSource& source) const override;
  std::string findings(const DelegateSource& source) const override;
  Status check(const DelegateSource& source) const override;
  Result<std::shared_ptr<const DelegateProgram>> load(DelegateSource source) const override;

 protected:
  // The same one for the life of the process.
  virtual std::shared_ptr<AssetLibrary> library() const = 0;

 private:
  AssetKind kind_;
};

}  // namespace mote::assets
