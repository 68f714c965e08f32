#include "runner/templates/json_input.h"

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "runner/templates/escapes.h"

namespace mote::jinja {
namespace {

using Json = nlohmann::json;

// Builds values as the parser meets them, without a JSON tree in between. Depth is checked before a container opens.
class Reader : public nlohmann::json_sax<Json> {
 public:
  Reader(Runtime& runtime, bool is_marked) : runtime_(runtime), marks_(is_marked ? &kAllMarked : nullptr) {}

  const Value& root() const { return root_; }

  bool null() override { return add(Value::none()); }
  bool boolean(bool value) override { return add(Value::of(value)); }
  bool number_integer(int64_t value) override { return add(Value::of(value)); }
  bool number_unsigned(uint64_t value) override {
    if (value > static_cast<uint64_t>(INT64_MAX))
      MOTE_JINJA_FAIL("%llu: integers must fit 64 bits", static_cast<unsigned long long>(value));
    return add(Value::of(static_cast<int64_t>(value)));
  }
  bool number_float(double value, const std::string& digits) override {
    if (digits.find_first_of(".eE") == digits.npos) fail(digits.substr(0, 40) + ": integers must fit 64 bits");
    return add(Value::of(value));
  }
  bool string(std::string& value) override { return add(Value::of(copy(value))); }
  bool binary(Json::binary_t&) override { return false; }

  bool start_object(size_t) override {
    const Value dict = Value::of(make_dict(runtime_.arena()));
    add(dict);
    return open(dict);
  }
  bool key(std::string& name) override {
    open_.back().key = Value::of(copy(name));
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(size_t) override {
    const Value list = Value::of(make_list(runtime_.arena()));
    add(list);
    return open(list);
  }
  bool end_array() override { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    fail(std::string("JSON: ") + error.what());
  }

 private:
  struct Open {
    Value container;
    Value key;
  };

  Text copy(const std::string& text) {
    if (!is_valid_utf8(text)) fail("JSON: a string is not UTF-8");
    return copy_text(runtime_.arena(), text, marks_);
  }

  bool open(const Value& container) {
    const int limit = runtime_.budget().limits().max_data_depth;
    if (static_cast<int>(open_.size()) >= limit) MOTE_JINJA_FAIL("JSON: lists and objects nest deeper than %d", limit);
    open_.push_back({container, Value::none()});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  bool add(const Value& value) {
    if (open_.empty()) {
      root_ = value;
    } else if (open_.back().container.is(Kind::kList)) {
      open_.back().container.list->add(runtime_.arena(), value);
    } else {
      open_.back().container.dict->set(runtime_.arena(), open_.back().key, value);
    }
    return true;
  }

  Runtime& runtime_;
  const Marks* marks_;
  Value root_;
  std::vector<Open> open_;
};

}  // namespace

Value read_json(Runtime& runtime, std::string_view json, bool is_marked) {
  Reader reader(runtime, is_marked);
  if (!Json::sax_parse(json.begin(), json.end(), &reader)) fail("JSON: cannot be read");
  return reader.root();
}

}  // namespace mote::jinja
