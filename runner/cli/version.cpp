#include "runner/cli/version.h"

#include <nlohmann/json.hpp>

#include "runner/cli/handles.h"

namespace mote::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string names_or_none(const Json& names) {
  std::string text;
  for (const Json& name : names) text += (text.empty() ? "" : ", ") + name.get<std::string>();
  return text.empty() ? "none" : text;
}

}  // namespace

std::string version_text() {
  const Json about =
      Json::parse(take_string([](char** text, mote_error* error) { return mote_describe_build(text, error); }));
  const auto text = [&](const char* name) { return about[name].get<std::string>(); };
  const std::string commit = text("commit");
  return "mote-runner " + text("version") + "\ncommit: " + (commit.empty() ? "unknown" : commit) +
         "\ncompiler: " + text("compiler") + "\nsystem: " + text("system") + " " + text("architecture") +
         "\ninstruction sets: " + names_or_none(about["instruction_sets"]) +
         "\nbackends: " + names_or_none(about["backends"]) + "\nline editing: " + MOTE_LINE_EDITING;
}

}  // namespace mote::cli
