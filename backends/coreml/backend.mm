// Core ML as a library of assets, from iOS 18 and macOS 15 on.
#include <algorithm>
#include <array>
#include <map>

#include "backends/assets/apple.h"
#include "backends/assets/backend.h"
#include "backends/coreml/arrays.h"
#include "backends/coreml/compiled.h"

#ifdef __APPLE__
#define MOTE_HAS_STATES macOS 15.0, iOS 18.0, tvOS 18.0, visionOS 2.0, watchOS 11.0, *
#else  // other compilers check this file, and do not know all of these systems
#define MOTE_HAS_STATES macOS 15.0, iOS 18.0, *
#endif
#define MOTE_NEEDS_STATES API_AVAILABLE(macos(15.0), ios(18.0), tvos(18.0), visionos(2.0), watchos(11.0))

namespace mote::coreml {
namespace {

using assets::Elements;
using assets::Port;
using assets::Reference;
using assets::StatePort;

constexpr std::string_view kFiles[] = {"Data/com.apple.CoreML/model.mlmodel",
                                       "Data/com.apple.CoreML/weights/weight.bin"};
constexpr assets::AssetKind kKind{"coreml", "Core ML", ".mlpackage", kFiles};

struct NamedUnits {
  std::string_view name;
  MLComputeUnits units;
};
constexpr std::array<NamedUnits, 4> kUnits = {{{"all", MLComputeUnitsAll},
                                               {"cpu", MLComputeUnitsCPUOnly},
                                               {"gpu", MLComputeUnitsCPUAndGPU},
                                               {"ane", MLComputeUnitsCPUAndNeuralEngine}}};

// What `work` gives; what Core ML throws becomes an error.
template <typename Work> auto guarded(const char* what, const Work& work) -> decltype(work()) {
  @autoreleasepool {
    @try {
      return work();
    } @catch (NSException* exception) {
      const char* reason = exception.reason.UTF8String;
      return Status(Code::kInternal, std::string("Core ML cannot ") + what + ": " + (reason == nullptr ? "" : reason));
    }
  }
}

class MOTE_NEEDS_STATES States final : public assets::AssetStates {
 public:
  explicit States(MLState* state) : state_(state) {}
  MLState* state() const { return state_; }

  Result<Elements> read(const StatePort& port, int64_t positions) override {
    return guarded("read a state", [&]() -> Result<Elements> {
      Elements elements(port.bytes_of(positions));
      Status status(Code::kInternal, "Core ML has no state " + port.port.name);
      Elements* to = &elements;
      Status* said = &status;
      [state_ getMultiArrayForStateNamed:text_of(port.port.name)
                                 handler:^(MLMultiArray* array) {
                                   *said = copy_part_from(array, port.port, port.sizes_of(positions), to);
                                 }];
      MOTE_RETURN_IF_ERROR(status);
      return elements;
    });
  }

  Status write(const StatePort& port, int64_t positions, const Elements& elements) override {
    return guarded("write a state", [&]() -> Status {
      Status status(Code::kInternal, "Core ML has no state " + port.port.name);
      Status* said = &status;
      const Elements* from = &elements;
      [state_ getMultiArrayForStateNamed:text_of(port.port.name)
                                 handler:^(MLMultiArray* array) {
                                   *said = copy_part_to(array, port.port, port.sizes_of(positions), *from);
                                 }];
      return status;
    });
  }

 private:
  MLState* state_;
};

// A package with a model for each function; states of one are those of all.
class MOTE_NEEDS_STATES Package final : public assets::Asset {
 public:
  explicit Package(Compiled compiled) : compiled_(std::move(compiled)) {}

  Status load(std::span<const Reference> functions, MLComputeUnits units) {
    for (const Reference& function : functions) {
      MLModelConfiguration* configuration = [[MLModelConfiguration alloc] init];
      configuration.computeUnits = units;
      configuration.functionName = text_of(function.function);
      NSError* error = nil;
      MLModel* model = [MLModel modelWithContentsOfURL:compiled_.url() configuration:configuration error:&error];
      if (model == nil) return error_of(("load function " + function.function).c_str(), error);
      models_[function.function] = model;
    }
    return {};
  }
  Compiled& compiled() { return compiled_; }

  Result<std::unique_ptr<assets::AssetStates>> make_states(std::span<const StatePort>) override {
    return guarded("make states", [&]() -> Result<std::unique_ptr<assets::AssetStates>> {
      MLState* state = [models_.begin()->second newState];
      MOTE_REQUIRE(state != nil, Code::kOutOfMemory, "Core ML has no memory for states");
      return std::unique_ptr<assets::AssetStates>(std::make_unique<States>(state));
    });
  }

  Status predict(const Reference& function, std::span<const Elements> inputs, std::span<Elements> outputs,
                 assets::AssetStates* states) override {
    return guarded("compute", [&]() -> Status {
      NSMutableDictionary<NSString*, MLFeatureValue*>* given = [NSMutableDictionary dictionary];
      for (size_t i = 0; i < inputs.size(); ++i) {
        MOTE_ASSIGN(MLMultiArray * array, array_over(function.inputs[i], inputs[i]));
        given[text_of(function.inputs[i].name)] = [MLFeatureValue featureValueWithMultiArray:array];
      }
      NSError* error = nil;
      MLDictionaryFeatureProvider* features = [[MLDictionaryFeatureProvider alloc] initWithDictionary:given
                                                                                                error:&error];
      if (features == nil) return error_of("take inputs", error);
      MLModel* model = models_.at(function.function);
      id<MLFeatureProvider> found = nil;
      if (states == nullptr) {
        found = [model predictionFromFeatures:features error:&error];
      } else {
        found = [model predictionFromFeatures:features usingState:static_cast<States*>(states)->state() error:&error];
      }
      if (found == nil) return error_of("compute", error);
      for (size_t i = 0; i < outputs.size(); ++i) {
        const Port& port = function.outputs[i];
        MOTE_RETURN_IF_ERROR(
            copy_from([found featureValueForName:text_of(port.name)].multiArrayValue, port, &outputs[i]));
      }
      return {};
    });
  }

 private:
  Compiled compiled_;
  std::map<std::string, MLModel*> models_;
};

class Library final : public assets::AssetLibrary {
 public:
  Status check_device() override {
    if (@available(MOTE_HAS_STATES)) return {};
    return {Code::kUnsupportedBackend, "Core ML has states from iOS 18 and macOS 15 on"};
  }
  std::string identity() override { return device_name() + "; " + assets::system_build(); }
  std::string device_name() override { return "Core ML on " + assets::apple_device(); }
  Result<assets::Units> units() override { return assets::apple_units("MOTE_COREML_UNITS"); }

  Result<std::shared_ptr<assets::Asset>> open(const std::string& folder, const std::string& cache_prefix,
                                              std::span<const Reference> functions, const std::string& units) override {
    if (@available(MOTE_HAS_STATES)) {
      return guarded("open the package", [&]() -> Result<std::shared_ptr<assets::Asset>> {
        const auto named = std::ranges::find(kUnits, units, &NamedUnits::name);
        MOTE_REQUIRE(named != kUnits.end(), Code::kInternal, "no units %s", units.c_str());
        MOTE_ASSIGN(Compiled compiled, Compiled::of(folder, cache_prefix, functions.front().sha256));
        const auto package = std::make_shared<Package>(std::move(compiled));
        Status status = package->load(functions, named->units);
        if (!status.ok() && package->compiled().was_found()) {
          MOTE_RETURN_IF_ERROR(package->compiled().renew());
          status = package->load(functions, named->units);
        }
        MOTE_RETURN_IF_ERROR(status);
        return std::shared_ptr<assets::Asset>(package);
      });
    }
    return check_device();
  }
};

class CoremlBackend final : public assets::AssetBackend {
 public:
  CoremlBackend() : AssetBackend(kKind) {}

 protected:
  std::shared_ptr<assets::AssetLibrary> library() const override {
    static const auto made = std::make_shared<Library>();
    return made;
  }
};

const CoremlBackend coreml_backend;
const BackendRegistration coreml_registration(&coreml_backend);

}  // namespace
}  // namespace mote::coreml
