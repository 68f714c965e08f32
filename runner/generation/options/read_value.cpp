#include "runner/generation/options/read_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/decimal.h"
#include "base/utf8.h"

namespace mote {
namespace {

using Kind = JsonTree::Kind;

constexpr size_t kMostValueShown = 60;  // bytes of a value in a message

std::string shown(const JsonTree& value) {
  std::string text = value.dump();
  if (text.size() <= kMostValueShown) return text;
  text.resize(kMostValueShown - 3);
  text.resize(text.size() - incomplete_utf8_suffix(text));
  return text + "...";
}

template <typename T>
std::optional<T> whole_number(const JsonTree& from) {
  if (from.kind == Kind::kFloat && std::floor(from.number) == from.number && std::fabs(from.number) < 0x1p53)
    return whole_number<T>(JsonTree{Kind::kInteger, from.number, format("%.0f", from.number), {}, {}});
  T value{};
  const char* end = from.text.data() + from.text.size();
  const auto parsed = std::from_chars(from.text.data(), end, value);
  if (from.kind != Kind::kInteger || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

template <typename T>
Status read_integer(const Option& option, const JsonTree& from, T& to) {
  const std::optional<T> value = whole_number<T>(from);
  if (!value.has_value()) {
    Option limited = option;  // what is too large for the type
    if (from.kind == Kind::kInteger && from.text[0] != '-')
      limited.accepted.most = std::min(limited.accepted.most, static_cast<double>(std::numeric_limits<T>::max()));
    return wrong_value(limited, from);
  }
  if (!check_accepted(option.name, *value, option.accepted).ok()) return wrong_value(option, from);
  to = *value;
  return {};
}

template <typename T>
Status read_number(const Option& option, const JsonTree& from, T& to) {
  const auto value = static_cast<T>(from.number);
  if (!from.is_number() || !check_accepted(option.name, value, option.accepted).ok()) return wrong_value(option, from);
  to = value;
  return {};
}

template <typename T>
std::string shortest(T value) {
  if (!std::isfinite(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  return shortest_text(value);
}

template <typename Values>
std::string list_of(const Values& values) {
  std::string text;
  for (const auto& value : values) text += (text.empty() ? "" : ", ") + json_of(value);
  return "[" + text + "]";
}

}  // namespace

Status wrong_value(const Option& option, const JsonTree& from) {
  return {Code::kInvalidArgument,
          std::string(option.name) + " = " + shown(from) + ": must be " + option.accepted_text()};
}

Status read_value(const Option& option, const JsonTree& from, bool& to) {
  if (from.kind != Kind::kBoolean) return wrong_value(option, from);
  to = from.number != 0.0;
  return {};
}

Status read_value(const Option& option, const JsonTree& from, int32_t& to) { return read_integer(option, from, to); }
Status read_value(const Option& option, const JsonTree& from, int64_t& to) { return read_integer(option, from, to); }
Status read_value(const Option& option, const JsonTree& from, uint64_t& to) { return read_integer(option, from, to); }
Status read_value(const Option& option, const JsonTree& from, float& to) { return read_number(option, from, to); }
Status read_value(const Option& option, const JsonTree& from, double& to) { return read_number(option, from, to); }

Status read_value(const Option& option, const JsonTree& from, std::string& to) {
  if (from.kind != Kind::kString) return wrong_value(option, from);
  to = from.text;
  return {};
}

Status read_value(const Option& option, const JsonTree& from, std::optional<std::string>& to) {
  std::string text;
  MOTE_RETURN_IF_ERROR(read_value(option, from, text));
  to = std::move(text);
  return {};
}

Status read_value(const Option& option, const JsonTree& from, std::vector<std::string>& to) {
  const auto is_text = [](const JsonTree& value) { return value.kind == Kind::kString && !value.text.empty(); };
  const bool is_list = from.kind == Kind::kArray && std::ranges::all_of(from.children, is_text);
  if (!is_list && !is_text(from)) return wrong_value(option, from);
  to.clear();
  if (!is_list) to.push_back(from.text);
  for (const JsonTree& child : from.children) to.push_back(child.text);
  return {};
}

Status read_value(const Option& option, const JsonTree& from, std::vector<int32_t>& to) {
  if (from.kind != Kind::kArray) return wrong_value(option, from);
  std::vector<int32_t> ids;
  for (const JsonTree& child : from.children) {
    const std::optional<int32_t> id = whole_number<int32_t>(child);
    if (!id.has_value() || *id < 0) return wrong_value(option, from);
    ids.push_back(*id);
  }
  to = std::move(ids);
  return {};
}

Result<size_t> read_choice(const Option& option, const JsonTree& from) {
  const bool is_boolean = from.kind == Kind::kBoolean;
  const bool is_said = is_boolean || from.kind == Kind::kString || from.kind == Kind::kInteger;
  const std::string_view name = is_boolean ? (from.number != 0.0 ? "true" : "false") : std::string_view(from.text);
  const auto found = std::ranges::find(option.choices, name);
  if (!is_said || found == option.choices.end()) return wrong_value(option, from);
  return static_cast<size_t>(found - option.choices.begin());
}

std::string json_of(bool value) { return value ? "true" : "false"; }
std::string json_of(int32_t value) { return std::to_string(value); }
std::string json_of(int64_t value) { return std::to_string(value); }
std::string json_of(uint64_t value) { return std::to_string(value); }
std::string json_of(float value) { return shortest(value); }
std::string json_of(double value) { return shortest(value); }
std::string json_of(std::string_view value) { return json_string(value); }
std::string json_of(const std::string& value) { return json_of(std::string_view(value)); }
std::string json_of(const std::optional<std::string>& value) { return value.has_value() ? json_of(*value) : "null"; }
std::string json_of(const std::vector<std::string>& values) { return list_of(values); }
std::string json_of(const std::vector<int32_t>& values) { return list_of(values); }

}  // namespace mote
