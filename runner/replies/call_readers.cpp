#include "runner/replies/call_readers.h"

#include <algorithm>
#include <array>

#include "base/json.h"
#include "runner/replies/text.h"

namespace mote::reply {
namespace {

constexpr size_t kMaxKeyBytes = 1024;

class ArgumentsReader final : public CallReader {
 public:
  ArgumentsReader(Message& message, const ValueSyntax& syntax) : message_(message), value_(syntax) {}

  Step feed(char c) override {
    json_.clear();
    const Step step = value_.feed(c, json_);
    if (step != Step::kError && !json_.empty()) message_.add_arguments(json_);
    return step;
  }

 private:
  Message& message_;
  ValueReader value_;
  std::string json_;
};

enum class Member { kName, kArguments, kId, kType, kOther };
struct MemberName {
  std::string_view key;
  Member member;
};
constexpr std::array<MemberName, 7> kMembers = {{{"name", Member::kName},
                                                 {"tool_name", Member::kName},
                                                 {"arguments", Member::kArguments},
                                                 {"parameters", Member::kArguments},
                                                 {"id", Member::kId},
                                                 {"tool_call_id", Member::kId},
                                                 {"type", Member::kType}}};

Member member_of(std::string_view key_as_json) {
  for (const MemberName& known : kMembers) {
    if (key_as_json.size() == known.key.size() + 2 && key_as_json.substr(1, known.key.size()) == known.key)
      return known.member;
  }
  return Member::kOther;
}

class ObjectReader final : public CallReader {
 public:
  ObjectReader(Message& message, bool is_bare) : message_(message), is_bare_(is_bare) {}

  Step feed(char c) override {
    if (is_inside_) return read_value(c);
    if (is_white_space(c)) return Step::kMore;
    const Expected expected = expected_;
    switch (expected) {
      case Expected::kOpen: expected_ = Expected::kFirstKey; return c == '{' ? Step::kMore : Step::kError;
      case Expected::kColon: expected_ = Expected::kValue; return c == ':' ? Step::kMore : Step::kError;
      case Expected::kComma:
        if (c == '}') return end();
        expected_ = Expected::kKey;
        return c == ',' ? Step::kMore : Step::kError;
      case Expected::kFirstKey:
      case Expected::kKey:
        if (c == '}' && expected == Expected::kFirstKey) return Step::kError;
        if (c != '"') return Step::kError;
        return begin_value(c);
      default: return begin_member(c);
    }
  }

 private:
  enum class Expected { kOpen, kFirstKey, kKey, kColon, kValue, kComma };

  Step begin_value(char c) {
    is_inside_ = true;
    value_ = ValueReader(kJsonSyntax);
    json_.clear();
    return read_value(c);
  }

  Step begin_member(char c) {
    member_ = member_of(key_);
    if (is_bare_ && (member_ == Member::kOther || (member_ == Member::kArguments && c != '{'))) return Step::kError;
    if (member_ == Member::kArguments) {
      if (has_arguments_) return Step::kError;
      has_arguments_ = true;
      if (!name_.empty() && !message_.begin_call(name_)) return Step::kError;
    }
    return begin_value(c);
  }

  Step read_value(char c) {
    const size_t size = json_.size();
    const Step step = value_.feed(c, json_);
    if (step == Step::kError || (expected_ != Expected::kValue && json_.size() > kMaxKeyBytes)) return Step::kError;
    if (streams() && json_.size() > size) message_.add_arguments(std::string_view(json_).substr(size));
    if (step == Step::kMore) return step;
    is_inside_ = false;
    if (!end_value()) return Step::kError;
    return step == Step::kEndBefore ? feed(c) : Step::kMore;
  }

  bool streams() const { return expected_ == Expected::kValue && member_ == Member::kArguments && message_.in_call(); }

  bool end_value() {
    if (expected_ != Expected::kValue) {
      key_ = json_;
      expected_ = Expected::kColon;
      return true;
    }
    expected_ = Expected::kComma;
    if (member_ == Member::kArguments && !message_.in_call()) arguments_ = json_;
    if (member_ != Member::kName && member_ != Member::kId) return true;
    const std::optional<JsonTree> decoded = parse_json_tree(json_, ValueReader::kMaxDepth);
    const bool is_string = decoded && decoded->kind == JsonTree::Kind::kString;
    if (member_ == Member::kId) {
      if (decoded) message_.set_id(is_string ? decoded->text : json_);
      return true;
    }
    if (!name_.empty() || !is_string) return false;
    name_ = decoded->text;
    return !name_.empty();
  }

  Step end() {
    if (name_.empty() || (is_bare_ && !has_arguments_)) return Step::kError;
    if (message_.in_call()) return Step::kEnd;
    if (!message_.begin_call(name_)) return Step::kError;
    if (has_arguments_) message_.add_arguments(arguments_);
    return Step::kEnd;
  }

  Message& message_;
  bool is_bare_;
  Expected expected_ = Expected::kOpen;
  bool is_inside_ = false;  // of a key or a value
  ValueReader value_{kJsonSyntax};
  std::string json_;
  std::string key_;
  Member member_ = Member::kOther;
  std::string name_;
  bool has_arguments_ = false;
  std::string arguments_;  // those that came before the name
};

class PythonReader final : public CallReader {
 public:
  explicit PythonReader(Message& message) : message_(message) {}

  Step feed(char c) override {
    switch (state_) {
      case State::kName: return read_name(c);
      case State::kFirstKey:
        if (c == ')') return end();
        [[fallthrough]];
      case State::kKey: return read_key(c);
      case State::kValue: return read_value(c);
      default: return after_value(c);
    }
  }

 private:
  enum class State { kName, kFirstKey, kKey, kValue, kComma };
  static constexpr std::string_view kMethod = ".call";

  static bool is_identifier(char c) {
    return c == '_' || c == '-' || c == '.' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           (c & 0x80) != 0;
  }

  Step read_name(char c) {
    if (c == '(') {
      if (name_.ends_with(kMethod)) name_.resize(name_.size() - kMethod.size());
      if (!message_.begin_call(name_)) return Step::kError;
      message_.add_arguments("{");
      state_ = State::kFirstKey;
      return Step::kMore;
    }
    if (!is_identifier(c) || name_.size() == kMaxKeyBytes) return Step::kError;
    name_ += c;
    return Step::kMore;
  }

  Step read_key(char c) {
    if (is_white_space(c)) return Step::kMore;
    if (c == '=') {
      if (key_.empty()) return Step::kError;
      message_.add_arguments((is_first_ ? "" : ", ") + json_string(key_) + ": ");
      is_first_ = false;
      key_.clear();
      value_ = ValueReader(kPythonSyntax);
      state_ = State::kValue;
      return Step::kMore;
    }
    if (!is_identifier(c) || key_.size() == kMaxKeyBytes) return Step::kError;
    state_ = State::kKey;
    key_ += c;
    return Step::kMore;
  }

  Step read_value(char c) {
    std::string json;
    const Step step = value_.feed(c, json);
    if (step == Step::kError) return step;
    message_.add_arguments(json);
    if (step == Step::kMore) return step;
    state_ = State::kComma;
    return step == Step::kEndBefore ? after_value(c) : Step::kMore;
  }

  Step after_value(char c) {
    if (is_white_space(c)) return Step::kMore;
    if (c == ')') return end();
    state_ = State::kKey;
    return c == ',' ? Step::kMore : Step::kError;
  }

  Step end() {
    message_.add_arguments("}");
    return Step::kEnd;
  }

  Message& message_;
  State state_ = State::kName;
  std::string name_;
  std::string key_;
  bool is_first_ = true;
  ValueReader value_{kPythonSyntax};
};

}  // namespace

std::unique_ptr<CallReader> make_arguments_reader(Message& message, const ValueSyntax& syntax) {
  return std::make_unique<ArgumentsReader>(message, syntax);
}
std::unique_ptr<CallReader> make_object_reader(Message& message, bool is_bare) {
  return std::make_unique<ObjectReader>(message, is_bare);
}
std::unique_ptr<CallReader> make_python_reader(Message& message) { return std::make_unique<PythonReader>(message); }

}  // namespace mote::reply
