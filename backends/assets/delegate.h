// A file's parts as functions of an asset: a program that the sessions of a model share, and a delegate for each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/assets/opened_asset.h"
#include "runner/program/delegate.h"

namespace mote::assets {

// What the parts of a file say together. Errors: kInvalidProgram.
struct Parts {
  std::vector<Reference> functions;
  std::vector<StatePort> ports;  // of all functions

  static Result<Parts> verify(const DelegateSource& source, const AssetKind& kind);
};

class Program : public DelegateProgram, public std::enable_shared_from_this<Program> {
 public:
  Program(std::shared_ptr<OpenedAsset> asset, const DelegateSource& source);

  Result<std::unique_ptr<Delegate>> open(const DelegateOptions& options) const override;
  bool has_state() const override { return !asset_->ports().empty(); }
  bool is_lost() const override { return asset_->hangs(); }

  OpenedAsset& asset() const { return *asset_; }
  const std::string& place(size_t part) const { return places_[part]; }

 private:
  std::shared_ptr<OpenedAsset> asset_;
  std::vector<std::string> places_;
};

}  // namespace mote::assets
