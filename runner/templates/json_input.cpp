#include "runner/templates/json_input.h"

#include <charconv>

#include "base/json.h"
#include "runner/templates/escapes.h"

namespace mote::jinja {
namespace {

// Builds values as the text is read, without a JSON tree in between. Depth is checked before a container opens.
class Reader : public JsonEvents {
 public:
  Reader(Runtime& runtime, bool is_marked) : runtime_(runtime), marks_(is_marked ? &kAllMarked : nullptr) {}

  const Value& root() const { return root_; }

  void null() override { add(Value::none()); }
  void boolean(bool value) override { add(Value::of(value)); }
  void number(std::string_view digits, double value, bool) override {
    if (digits.find_first_of(".eE") != digits.npos) return add(Value::of(value));
    int64_t integer;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), integer).ec != std::errc())
      fail(std::string(digits.substr(0, 40)) + ": integers must fit 64 bits");
    add(Value::of(integer));
  }
  void string(std::string value) override { add(Value::of(copy(value))); }
  void key(std::string name) override { open_.back().key = Value::of(copy(name)); }
  bool open(bool is_object) override {
    const Value container = is_object ? Value::of(make_dict(runtime_.arena())) : Value::of(make_list(runtime_.arena()));
    add(container);
    const int limit = runtime_.budget().limits().max_data_depth;
    if (static_cast<int>(open_.size()) >= limit) MOTE_JINJA_FAIL("JSON: lists and objects nest deeper than %d", limit);
    open_.push_back({container, Value::none()});
    return true;
  }
  void close() override { open_.pop_back(); }

 private:
  struct Open {
    Value container;
    Value key;
  };

  Text copy(const std::string& text) { return copy_text(runtime_.arena(), text, marks_); }

  void add(const Value& value) {
    if (open_.empty()) {
      root_ = value;
    } else if (open_.back().container.is(Kind::kList)) {
      open_.back().container.list->add(runtime_.arena(), value);
    } else {
      open_.back().container.dict->set(runtime_.arena(), open_.back().key, value);
    }
  }

  Runtime& runtime_;
  const Marks* marks_;
  Value root_;
  std::vector<Open> open_;
};

}  // namespace

Value read_json(Runtime& runtime, std::string_view json, bool is_marked) {
  Reader reader(runtime, is_marked);
  if (const Status status = mote::read_json(json, reader); !status.ok()) fail("JSON: " + status.message());
  return reader.root();
}

}  // namespace mote::jinja
