#include "runner/model/json_tree.h"

#include <nlohmann/json.hpp>

namespace mote {
namespace {

using Kind = JsonTree::Kind;

class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(size_t max_depth) : max_depth_(max_depth) {}
  JsonTree take_root() { return std::move(root_); }

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add({Kind::kBoolean, value ? 1.0 : 0.0, {}, {}, {}}); }
  bool number_integer(int64_t value) override {
    return add({Kind::kInteger, static_cast<double>(value), std::to_string(value), {}, {}});
  }
  bool number_unsigned(uint64_t value) override {
    return add({Kind::kInteger, static_cast<double>(value), std::to_string(value), {}, {}});
  }
  bool number_float(double value, const std::string& digits) override {
    return add({Kind::kFloat, value, digits, {}, {}});
  }
  bool string(std::string& value) override { return add({Kind::kString, 0.0, std::move(value), {}, {}}); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Kind::kObject); }
  bool start_array(size_t) override { return open(Kind::kArray); }
  bool key(std::string& name) override {
    open_.back()->names.push_back(std::move(name));
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  JsonTree& place(JsonTree value) {
    if (open_.empty()) return root_ = std::move(value);
    return open_.back()->children.emplace_back(std::move(value));
  }
  bool add(JsonTree value) {
    place(std::move(value));
    return true;
  }
  // Pointers to the open values stay valid, because only the innermost of them gets children.
  bool open(Kind kind) {
    if (open_.size() == max_depth_) return false;
    open_.push_back(&place({kind, 0.0, {}, {}, {}}));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  size_t max_depth_;
  JsonTree root_;
  std::vector<JsonTree*> open_;
};

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

const JsonTree* JsonTree::find(std::string_view name) const {
  for (size_t i = names.size(); i-- > 0;) {
    if (names[i] == name) return &children[i];
  }
  return nullptr;
}

std::string JsonTree::dump() const {
  if (kind == Kind::kNull) return "null";
  if (kind == Kind::kBoolean) return number != 0.0 ? "true" : "false";
  if (is_number()) return text;
  if (kind == Kind::kString) return quoted(text);
  std::string all;
  for (size_t i = 0; i < children.size(); ++i) {
    if (i > 0) all += ",";
    if (kind == Kind::kObject) all += quoted(names[i]) + ":";
    all += children[i].dump();
  }
  return kind == Kind::kObject ? "{" + all + "}" : "[" + all + "]";
}

std::optional<JsonTree> parse_json_tree(std::string_view json, size_t max_depth) {
  Builder builder(max_depth);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &builder)) return std::nullopt;
  return builder.take_root();
}

}  // namespace mote
