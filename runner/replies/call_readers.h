// Readers of what stands between the marks of a call. They take it byte by byte and write it into a message.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runner/replies/message.h"
#include "runner/replies/value_reader.h"

namespace mote::reply {

class CallReader {
 public:
  virtual ~CallReader() = default;
  virtual Step feed(char c) = 0;
};

// Reads the arguments of a call, whose name is known, as one value.
std::unique_ptr<CallReader> make_arguments_reader(Message& message, const ValueSyntax& syntax);
// Reads a call as {"name": .., "arguments": {..}}, with "tool_name" and "parameters" as other names of these keys.
// is_bare: no mark said that this is a call, so an object with other keys, or with arguments that are not an object, is
// not one.
std::unique_ptr<CallReader> make_object_reader(Message& message, bool is_bare);
// Reads a call as Python writes it: name(key=value, ..).
std::unique_ptr<CallReader> make_python_reader(Message& message);
// Reads the value of a parameter that is written as elements, up to the end of the element `key`. `prefix` stands
// before the name in every tag. Items of lists are elements called "item". Numbers, true, false and null are read as
// such, any other text as a string.
std::unique_ptr<CallReader> make_nested_reader(Message& message, std::string_view prefix, std::string_view key,
                                               bool is_text);

}  // namespace mote::reply
