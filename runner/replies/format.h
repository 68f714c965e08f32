// How models write replies: a table. A format is a set of states and the marks that lead from one to the next.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runner/replies/value_reader.h"

namespace mote::reply {

// What the text in a state is.
enum class State : uint8_t {
  kContent,
  kAnswer,  // content that has a mark at its end
  kReasoning,
  kStart,       // nothing yet: white space is content, other text goes where the rule for any text says
  kOutside,     // between parts: white space is nothing
  kHeader,      // of a part: names, which the mark at its end reads
  kSection,     // between calls: white space only
  kParameters,  // between parameters: likewise
  kBetween,     // likewise
  kAfter,       // likewise
  kId,
  kName,
  kKey,         // of a parameter
  kText,        // a parameter: a string
  kTyped,       // a parameter: a value of the format's syntax, else a string
  kNested,      // a parameter: elements
  kArguments,   // one value: all arguments
  kObject,      // a call as JSON
  kBareObject,  // likewise, where no mark said that it is a call
  kPython,      // a call in Python
};

enum Effect : uint8_t {
  kNothing = 0,
  kBegin = 1,   // the call begins: its name is known
  kEnd = 2,     // the call ends
  kFirst = 4,   // counts only where no content was written yet
  kAgain = 8,   // the mark belongs to what follows
  kRoute = 16,  // the header says what follows
};

// Marks that are no text.
inline constexpr std::string_view kAny = "";           // any text but white space
inline constexpr std::string_view kComplete("\0", 1);  // the value or the call is complete

struct Rule {
  State from;
  std::string_view mark;
  State to;
  uint8_t effects = kNothing;
};

// The first whose word is in a header.
struct Route {
  std::string_view word;
  State to;
};

struct Format {
  std::string_view name;
  // A chat template that has all of them in its source writes this format.
  std::span<const std::string_view> signs;
  std::span<const Rule> reasoning;
  std::span<const Rule> calls;
  State start = State::kContent;
  // Characters that the template writes around marks: at the edges of content and of reasoning they are dropped.
  std::string_view trims = "";
  std::string_view trims_reasoning = "";
  bool trims_end = false;                       // also at the end of a reply that is content
  std::span<const std::string_view> ends = {};  // marks that are dropped if the reply ends in them
  const ValueSyntax* syntax = &kJsonSyntax;     // of kArguments and kTyped
  bool has_padded_values = false;               // a line break before and after a parameter
  std::string_view name_prefix = "";            // of a tool's name, not part of it
  bool name_is_id = false;                      // name:number, all of which is the call's id
  std::string_view default_name = "";           // of a call that names no tool
  std::string_view element_prefix = "";         // of kNested
  std::span<const Route> routes = {};
};

// In the order in which templates are compared with them; the last fits any.
std::span<const Format> formats();
// nullptr: there is none of that name.
const Format* find_format(std::string_view name);
const Format& recognise_format(std::string_view chat_template);

// Where a reply begins, by the end of its prompt.
struct Beginning {
  State state;
  bool follows_mark;  // white space at the beginning belongs to the prompt's last mark
};
Beginning beginning_after(const Format& format, std::string_view prompt);

}  // namespace mote::reply
