// What a reply says: text, reasoning and calls, as they are found.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mote::reply {

enum class EventKind {
  kContent = 1,    // text: what was added
  kReasoning,      // likewise
  kCallBegin,      // text: the tool's name; id: the call's, if it is known
  kCallArguments,  // text: a piece of the arguments as JSON
  kCallEnd,        // id: likewise
  kCallDiscarded,  // the call that was begun is malformed; what was written of it follows as content
};

struct Event {
  EventKind kind = EventKind::kContent;
  size_t index = 0;  // of the call; one that is discarded gives its index to the next
  std::string text;
  std::string id;
};

// Text without the white space that belongs to the marks around it.
class TrimmedText {
 public:
  explicit TrimmedText(std::string_view trimmed) : trimmed_(trimmed) {}

  // Returns the text that the byte lets out.
  std::string_view add(char c);
  // Text that counts only if more follows.
  void hold(std::string_view text);
  // A mark was read. White space before and behind it counts only between two parts of the text.
  void mark();
  // What was read since the last mark, and the mark, are text after all.
  void unmark();
  // A new part begins: a line break divides it from the one before.
  void divide();
  // Returns the white space at the end, if it is text.
  std::string_view finish(bool trims_end);

  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }

 private:
  std::string_view since(size_t size) const { return std::string_view(text_).substr(size); }

  std::string_view trimmed_;
  std::string text_;
  std::string held_;
  std::string dropped_;  // by the last mark
  bool drops_ = false;
  bool follows_mark_ = false;
};

class Message {
 public:
  Message(std::string_view trimmed_content, std::string_view trimmed_reasoning)
      : content_(trimmed_content), reasoning_(trimmed_reasoning) {}

  void add_content(char c) { emit(EventKind::kContent, content_.add(c)); }
  void add_reasoning(char c) { emit(EventKind::kReasoning, reasoning_.add(c)); }
  TrimmedText& content() { return content_; }
  bool has_content() const { return !content_.empty(); }
  TrimmedText& reasoning() { return reasoning_; }
  void finish(bool trims_end);

  // false if that is no name.
  bool begin_call(std::string_view name);
  void set_id(std::string_view id) { call_.id = id; }
  void add_arguments(std::string_view json);
  void end_call();
  void discard_call();
  bool in_call() const { return in_call_; }

  // Where events go; they are merged where they can be.
  void set_events(std::vector<Event>* events) { events_ = events; }
  // {"role", "content", "reasoning_content", "tool_calls"}, the last two only where there are any. call_ids: of the
  // calls that have none; may be fewer.
  std::string json(std::span<const std::string> call_ids) const;
  size_t num_calls() const { return calls_.size(); }

 private:
  struct Call {
    std::string name;
    std::string id;
    std::string arguments;  // JSON
  };
  void emit(EventKind kind, std::string_view text, std::string_view id = {});

  TrimmedText content_;
  TrimmedText reasoning_;
  std::vector<Call> calls_;
  Call call_;
  bool in_call_ = false;
  std::vector<Event>* events_ = nullptr;
};

}  // namespace mote::reply
