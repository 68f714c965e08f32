// The table of the formats in which models write replies. A format is a set of states and the marks that lead from one
// to the next.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runner/replies/value_reader.h"

namespace mote::reply {

// What the text is that comes in a state.
enum class State : uint8_t {
  kContent,
  kAnswer,  // content that has a mark at its end
  kReasoning,
  kStart,       // before any text: white space is content; other text leads on as the rule for kAny says
  kOutside,     // between parts: white space is dropped
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

// Marks that stand for no text of their own.
inline constexpr std::string_view kAny = "";           // any text but white space
inline constexpr std::string_view kComplete("\0", 1);  // the value or the call is complete

struct Rule {
  State from;
  std::string_view mark;
  State to;
  uint8_t effects = kNothing;
};

// Where a header leads: the first route whose word is in it is taken.
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
  bool trims_end = false;  // white space is dropped also at the end of a reply that ends in content
  std::span<const std::string_view> ends = {};  // marks that are dropped if the reply ends in them
  const ValueSyntax* syntax = &kJsonSyntax;     // for the values of kArguments and kTyped
  bool has_padded_values = false;               // a line break before and after a parameter
  std::string_view name_prefix = "";            // written before a tool's name, and not part of it
  bool name_is_id = false;                      // a name is written as name:number, and the whole is the call's id
  std::string_view default_name = "";           // of a call that names no tool
  std::string_view element_prefix = "";         // of kNested
  std::span<const Route> routes = {};
};

// All formats, in the order in which a template is compared with them. The last fits any template.
std::span<const Format> formats();
// The format of that name; nullptr: there is none.
const Format* find_format(std::string_view name);
const Format& recognise_format(std::string_view chat_template);

// The state in which a reply begins, which follows from the end of its prompt.
struct Beginning {
  State state;
  bool follows_mark;  // white space at the beginning belongs to the prompt's last mark
};
Beginning beginning_after(const Format& format, std::string_view prompt);

}  // namespace mote::reply
