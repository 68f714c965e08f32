#include "runner/session/adapters/adapter.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <unordered_map>

#include "base/decimal.h"
#include "base/open_file.h"
#include "base/parts.h"

namespace mote {
namespace {

constexpr std::string_view kEnding = ".mote-adapter";

// The adapters of a model that somebody uses, by the version of the file that they were read from.
struct UsedAdapters {
  struct Entry {
    FileInfo::Identity file;
    std::weak_ptr<const Adapter> adapter;
  };
  mutable std::mutex mutex;
  mutable std::unordered_map<std::string, Entry> by_path;
};

Result<std::shared_ptr<const UsedAdapters>> make_used() { return std::make_shared<const UsedAdapters>(); }

Status check_weight(const std::string& name, double weight) {
  MOTE_REQUIRE(std::isfinite(weight), Code::kInvalidArgument, "adapter %s: weight = %g: must be a finite number",
               name.c_str(), weight);
  return {};
}

}  // namespace

std::string Adapter::name() const {
  const size_t slash = path_.find_last_of("/\\");
  std::string name = slash == std::string::npos ? path_ : path_.substr(slash + 1);
  if (name.size() > kEnding.size() && name.ends_with(kEnding)) name.resize(name.size() - kEnding.size());
  return name;
}

bool is_same_mix(const AdapterMix& a, const AdapterMix& b) {
  return std::ranges::equal(a, b, [](const MixedAdapter& x, const MixedAdapter& y) { return x.is_same(y); });
}

std::string text_of(const AdapterMix& mix) {
  std::string text;
  for (const MixedAdapter& each : mix) {
    text += (text.empty() ? "" : ", ") + each.adapter->name();
    if (each.weight != 1.0f) text += format("=%g", static_cast<double>(each.weight));
  }
  return text.empty() ? "no adapter" : text;
}

Result<std::shared_ptr<const Adapter>> shared_adapter(const Model& model, const std::string& path) {
  MOTE_REQUIRE_PART("adapters", Code::kInvalidArgument);
  MOTE_ASSIGN(const auto used, model.derived<UsedAdapters>(make_used));
  const std::lock_guard lock(used->mutex);
  const Result<OpenedFile> opened = open_regular_file(path);
  if (const auto found = used->by_path.find(path); found != used->by_path.end()) {
    auto adapter = found->second.adapter.lock();
    const bool is_replaced = opened.ok() && !(opened->info.identity == found->second.file);
    if (adapter != nullptr && !is_replaced) return adapter;
  }
  MOTE_RETURN_IF_ERROR(opened.status());
  MOTE_ASSIGN(auto adapter, Adapter::load(model, path));
  used->by_path[path] = {opened->info.identity, adapter};
  return adapter;
}

Result<MixedAdapter> load_mixed(const Model& model, const std::string& text) {
  const size_t middle = text.rfind('=');
  MixedAdapter mixed;
  std::string path = text;
  if (middle != std::string::npos) {
    const std::string written = text.substr(middle + 1);
    const std::optional<double> weight = read_decimal(written);
    MOTE_REQUIRE(weight.has_value(), Code::kInvalidArgument,
                 "adapter %s: must be FILE or FILE=WEIGHT, and %s is no number", text.c_str(), written.c_str());
    path.resize(middle);
    mixed.weight = static_cast<float>(*weight);
  }
  MOTE_RETURN_IF_ERROR(check_weight(path, static_cast<double>(mixed.weight)));
  MOTE_ASSIGN(mixed.adapter, shared_adapter(model, path));
  return mixed;
}

Result<AdapterMix> load_mix(const Model& model, const std::vector<std::string>& texts) {
  AdapterMix mix;
  for (const std::string& text : texts) {
    MOTE_ASSIGN(MixedAdapter mixed, load_mixed(model, text));
    mix.push_back(std::move(mixed));
  }
  return mix;
}

Status check_mix(const Model& model, const AdapterMix& mix) {
  for (const MixedAdapter& each : mix) {
    MOTE_REQUIRE(&each.adapter->bound() == model.bound().get(), Code::kInvalidArgument,
                 "adapter %s: was loaded for another model than %s", each.adapter->path().c_str(),
                 model.path().c_str());
    MOTE_RETURN_IF_ERROR(check_weight(each.adapter->path(), static_cast<double>(each.weight)));
  }
  return {};
}

}  // namespace mote
