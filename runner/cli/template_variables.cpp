#include "runner/cli/template_variables.h"

#include "runner/cli/handles.h"

namespace mote::cli {

using Json = nlohmann::ordered_json;

Json template_value(const std::string& text) {
  Json parsed = Json::parse(text, nullptr, false);
  return parsed.is_discarded() ? Json(text) : parsed;
}

Json template_variables(const std::vector<std::string>& pairs) {
  Json variables = Json::object();
  for (const std::string& pair : pairs) {
    const size_t equals = pair.find('=');
    if (equals == 0 || equals == pair.npos) throw InputError("--set " + pair + ": must be NAME=VALUE");
    variables[pair.substr(0, equals)] = template_value(pair.substr(equals + 1));
  }
  return variables;
}

}  // namespace mote::cli
