#include "runner/cli/target_choice.h"

namespace mote::cli {

Json describe(const Model& model) {
  return Json::parse(
      take_string([&](char** text, mote_error* error) { return mote_model_describe(model.get(), text, error); }));
}

bool has_backends(const Json& about) { return about["targets"].size() > 1 || !about["delegates"].empty(); }

std::string choice_text(const Json& about) {
  if (!has_backends(about)) return "";
  std::string text = "runs on " + about["target"].get<std::string>();
  for (const auto& [name, reason] : about["targets"].items()) {
    if (!reason.is_null()) text += "; not on " + name + ": " + reason.get<std::string>();
  }
  return text;
}

}  // namespace mote::cli
