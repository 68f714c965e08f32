#include "tokenizer/compile/json.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "tokenizer/compile/json_number.h"

namespace mote::tokenizer {
namespace {

const Json kNull;

// Nesting depth without parsing, so that no parser ever sees a file that is deeper than allowed.
int nesting_depth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

// Builds the document as nlohmann's own reader does, but for the value of numbers.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t, const string_t& text) override {
    const double value = json_number(text);
    return std::isfinite(value) && put(value);
  }
  bool string(string_t& text) override { return put(std::move(text)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    Json& parent = *open_.back();
    if (parent.is_object()) return parent[key_] = std::move(value);
    parent.push_back(std::move(value));
    return parent.back();
  }
  bool put(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    open_.push_back(&place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Json*> open_;  // from the root to the innermost one; none moves while it is open
  std::string key_;
};

std::string shown(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 80) text = replace_invalid_utf8(std::string_view(text).substr(0, 80)) + "...";
  return text;
}

}  // namespace

Result<Json> parse_json(std::string_view text) {
  MOTE_REQUIRE(nesting_depth(text) <= kMaxJsonDepth, Code::kInvalidTokenizer,
               "tokenizer.json nests deeper than %d levels", kMaxJsonDepth);
  Builder builder;
  MOTE_REQUIRE(Json::sax_parse(text.begin(), text.end(), &builder), Code::kInvalidTokenizer,
               "tokenizer.json is not valid JSON");
  Json json = builder.take();
  MOTE_REQUIRE(json.is_object(), Code::kInvalidTokenizer, "tokenizer.json must be a JSON object");
  return json;
}

Field Field::operator[](const char* key) const {
  std::string path = path_.empty() ? key : path_ + "." + key;
  if (!json_->is_object()) return {kNull, std::move(path)};
  const auto found = json_->find(key);
  return {found == json_->end() ? kNull : *found, std::move(path)};
}

Field Field::operator[](size_t index) const {
  std::string path = path_ + "[" + std::to_string(index) + "]";
  const bool present = json_->is_array() && index < json_->size();
  return {present ? (*json_)[index] : kNull, std::move(path)};
}

std::string Field::type() const {
  const Field type = (*this)["type"];
  return type.json().is_string() ? type.json().get<std::string>() : std::string();
}

Result<std::string> Field::text() const {
  if (!json_->is_string()) return error("a string");
  return json_->get<std::string>();
}

Result<bool> Field::boolean(bool if_absent) const {
  if (json_->is_null()) return if_absent;
  if (!json_->is_boolean()) return error("true or false");
  return json_->get<bool>();
}

Result<char32_t> Field::character() const {
  const std::string text = json_->is_string() ? json_->get<std::string>() : std::string();
  const Utf8Character character = text.empty() ? Utf8Character() : first_utf8_character(text);
  if (text.empty() || character.length != text.size()) return error("a string of one character");
  return character.code_point;
}

Result<double> Field::number() const {
  if (!json_->is_number()) return error("a number");
  return json_->get<double>();
}

Result<int64_t> Field::integer(int64_t low, int64_t high) const {
  const bool fits = json_->is_number_integer() &&
                    (!json_->is_number_unsigned() || json_->get<uint64_t>() <= static_cast<uint64_t>(high));
  const int64_t value = fits ? json_->get<int64_t>() : 0;
  if (!fits || value < low || value > high) {
    return error("an integer from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

Status Field::require_object() const { return json_->is_object() ? Status() : error("an object"); }

Status Field::require_array() const { return json_->is_array() ? Status() : error("a list"); }

Status Field::require_off() const {
  const bool off = json_->is_null() || *json_ == "" || *json_ == 0;
  return off ? Status() : error("null: it is not supported");
}

Status Field::error(const std::string& accepted) const {
  const std::string value = json_->is_null() ? "absent" : shown(*json_);
  return {Code::kInvalidTokenizer, "tokenizer.json: " + path_ + " = " + value + ": must be " + accepted};
}

}  // namespace mote::tokenizer
