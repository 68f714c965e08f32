#include "base/json.h"
#include "runner/replies/call_readers.h"

#include <utility>
#include <vector>

#include "runner/replies/text.h"

namespace mote::reply {
namespace {

constexpr size_t kMaxTagBytes = 1024;
constexpr std::string_view kItem = "item";

class NestedReader final : public CallReader {
 public:
  NestedReader(Message& message, std::string_view prefix, std::string_view key, bool is_text)
      : message_(message), mark_(std::string(prefix) + "<"), is_text_(is_text) {
    open_.push_back({std::string(key)});
  }

  Step feed(char c) override {
    if (is_tag_) return read_tag(c);
    held_ += c;
    while (!held_.empty() && !mark_.starts_with(held_)) {
      text_ += held_[0];
      held_.erase(0, 1);
    }
    if (held_ == mark_) {
      held_.clear();
      is_tag_ = true;
    }
    return Step::kMore;
  }

 private:
  struct Element {
    std::string name;
    char bracket = '\0';  // of its children
  };

  Step read_tag(char c) {
    if (c != '>') {
      tag_ += c;
      return c == '<' || tag_.size() > kMaxTagBytes ? Step::kError : Step::kMore;
    }
    is_tag_ = false;
    const std::string tag = std::exchange(tag_, {});
    const bool closes = tag.starts_with('/');
    if (tag.size() == (closes ? 1U : 0U)) return Step::kError;
    return closes ? close(tag.substr(1)) : open(tag);
  }

  Step open(const std::string& name) {
    if (!is_blank(text_) || open_.size() == ValueReader::kMaxDepth) return Step::kError;
    text_.clear();
    Element& parent = open_.back();
    const bool is_list = parent.bracket == '[' || (parent.bracket == '\0' && name == kItem);
    if (is_list && name != kItem) return Step::kError;
    std::string json(parent.bracket == '\0' ? (is_list ? "[" : "{") : ", ");
    parent.bracket = is_list ? '[' : '{';
    if (!is_list) json += json_string(name) + ": ";
    message_.add_arguments(json);
    open_.push_back({name});
    return Step::kMore;
  }

  Step close(const std::string& name) {
    const Element& element = open_.back();
    if (element.name != name) return Step::kError;
    if (element.bracket == '\0') {
      const auto value = is_text_ || text_.starts_with('"') ? std::nullopt : value_as_json(text_, kJsonSyntax);
      message_.add_arguments(value ? *value : json_string(text_));
    } else {
      if (!is_blank(text_)) return Step::kError;
      message_.add_arguments(element.bracket == '[' ? "]" : "}");
    }
    text_.clear();
    open_.pop_back();
    return open_.empty() ? Step::kEnd : Step::kMore;
  }

  Message& message_;
  std::string mark_;
  bool is_text_;
  std::vector<Element> open_;
  bool is_tag_ = false;
  std::string held_;
  std::string tag_;
  std::string text_;  // of the innermost element
};

}  // namespace

std::unique_ptr<CallReader> make_nested_reader(Message& message, std::string_view prefix, std::string_view key,
                                               bool is_text) {
  return std::make_unique<NestedReader>(message, prefix, key, is_text);
}

}  // namespace mote::reply
