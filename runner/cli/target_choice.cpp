#include "runner/cli/target_choice.h"

namespace mote::cli {
namespace {

// The backend, and why the session moved there by itself.
std::pair<std::string, std::string> place_of(const Session& session) {
  std::string reason;
  const std::string backend = take_string([&](char** text, mote_error* error) {
    char* because = nullptr;
    const mote_error_code code = mote_session_get_backend(session.get(), text, &because, error);
    if (code != MOTE_OK) return code;
    const std::unique_ptr<char, Closer<mote_string_free>> owned(because);
    reason = because;
    return code;
  });
  return {backend, reason};
}

}  // namespace

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

std::string place_text(const Session& session) {
  const auto [backend, reason] = place_of(session);
  return backend + (reason.empty() ? "" : ", because " + reason);
}

std::string moved_text(const Session& session) {
  const auto [backend, reason] = place_of(session);
  return reason.empty() ? "" : "moved to " + backend + ": " + reason;
}

void require_unmoved(const Session& session) {
  if (const std::string moved = moved_text(session); !moved.empty()) throw InputError("the session " + moved);
}

}  // namespace mote::cli
