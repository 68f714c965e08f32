#include "backends/assets/opened_asset.h"

#include "backends/proof/deadline.h"

namespace mote::assets {

Result<std::shared_ptr<OpenedAsset>> OpenedAsset::open(std::shared_ptr<AssetLibrary> library, const std::string& folder,
                                                       const std::string& cache_prefix,
                                                       std::vector<Reference> functions, std::vector<StatePort> ports,
                                                       const std::string& units) {
  const std::shared_ptr<OpenedAsset> opened(new OpenedAsset);
  opened->library_ = std::move(library);
  opened->functions_ = std::move(functions);
  opened->ports_ = std::move(ports);
  const auto found = proof::within<std::shared_ptr<Asset>>(
      opened->library_->patience_to_open(), [opened, folder, cache_prefix, units] {
        return opened->library_->open(folder, cache_prefix, opened->functions_, units);
      });
  MOTE_REQUIRE(found.has_value(), Code::kUnsupportedBackend,
               "the runtime did not answer when it was to open the asset");
  MOTE_ASSIGN(opened->asset_, *found);
  return opened;
}

template <typename T> Result<T> OpenedAsset::call(const std::function<Result<T>(OpenedAsset&)>& work) {
  if (!hangs_) {
    const auto ended = proof::within<T>(library_->patience_to_compute(), [self = shared_from_this(), work] {
      const std::lock_guard lock(self->calls_);
      return work(*self);
    });
    if (ended) return *ended;
    hangs_ = true;
  }
  return Status(Code::kInternal, "the runtime did not answer");
}

Result<std::shared_ptr<AssetStates>> OpenedAsset::make_states() {
  return call<std::shared_ptr<AssetStates>>([](OpenedAsset& self) -> Result<std::shared_ptr<AssetStates>> {
    MOTE_ASSIGN(std::unique_ptr<AssetStates> states, self.asset_->make_states(self.ports_));
    return std::shared_ptr<AssetStates>(std::move(states));
  });
}

Result<std::vector<Elements>> OpenedAsset::predict(size_t function, std::vector<Elements> inputs,
                                                   std::shared_ptr<AssetStates> states) {
  return call<std::vector<Elements>>([function, inputs = std::move(inputs),
                                      states = std::move(states)](OpenedAsset& self) -> Result<std::vector<Elements>> {
    const Reference& reference = self.functions_[function];
    std::vector<Elements> outputs;
    for (const Port& port : reference.outputs) outputs.emplace_back(port.num_bytes());
    MOTE_RETURN_IF_ERROR(self.asset_->predict(reference, inputs, outputs, states.get()));
    return outputs;
  });
}

Result<Elements> OpenedAsset::read(const std::shared_ptr<AssetStates>& states, size_t port, int64_t positions) {
  return call<Elements>([states, port, positions](OpenedAsset& self) -> Result<Elements> {
    MOTE_ASSIGN(Elements elements, states->read(self.ports_[port], positions));
    MOTE_REQUIRE(elements.size() == self.ports_[port].bytes_of(positions), Code::kInternal,
                 "the runtime gave %zu bytes of state %s", elements.size(), self.ports_[port].port.name.c_str());
    return elements;
  });
}

Status OpenedAsset::write(const std::shared_ptr<AssetStates>& states, size_t port, int64_t positions,
                          Elements elements) {
  return call<bool>([states, port, positions, elements = std::move(elements)](OpenedAsset& self) -> Result<bool> {
           MOTE_RETURN_IF_ERROR(states->write(self.ports_[port], positions, elements));
           return true;
         })
      .status();
}

}  // namespace mote::assets
