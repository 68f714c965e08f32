#include "runner/model/generation_config.h"

#include <algorithm>
#include <optional>

namespace mote {
namespace {

using Kind = JsonTree::Kind;

constexpr size_t kMaxDepth = 32;

}  // namespace

Result<JsonTree> parse_generation_config(std::string_view json) {
  std::optional<JsonTree> parsed = parse_json_tree(json, kMaxDepth);
  const bool is_object = parsed.has_value() && parsed->kind == Kind::kObject;
  MOTE_REQUIRE(is_object, Code::kInvalidProgram, "generation_config must be a JSON object, at most %zu levels deep",
               kMaxDepth);
  return *std::move(parsed);
}

Result<std::string> generation_config_with_eos(std::string_view text, std::span<const int32_t> eos_token_ids) {
  MOTE_ASSIGN(JsonTree json, parse_generation_config(text));
  JsonTree list{Kind::kArray, 0.0, {}, {}, {}};
  for (const int32_t id : eos_token_ids) list.children.push_back({Kind::kInteger, 0.0, std::to_string(id), {}, {}});
  const auto found = std::ranges::find(json.names, "eos_token_id");
  const auto index = static_cast<size_t>(found - json.names.begin());
  if (found == json.names.end()) {
    json.names.emplace_back("eos_token_id");
    json.children.emplace_back();
  }
  json.children[index] = std::move(list);
  return json.dump();
}

}  // namespace mote
