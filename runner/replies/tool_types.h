// Which parameters of which tools are strings.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace mote::reply {

class ToolTypes {
 public:
  ToolTypes() = default;
  // tools: a JSON list of schemas, each perhaps inside of {"function": ..}. Schemas that are odd are skipped.
  // Errors: kInvalidArgument if that is no JSON list.
  static Result<ToolTypes> read(std::string_view tools);

  bool is_string(const std::string& tool, const std::string& parameter) const {
    return strings_.contains({tool, parameter});
  }

 private:
  std::set<std::pair<std::string, std::string>> strings_;
};

}  // namespace mote::reply
