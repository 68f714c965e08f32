// What stands inside of the marks of a call, read byte by byte into a message.
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

// The arguments of a call that is begun: one value.
std::unique_ptr<CallReader> make_arguments_reader(Message& message, const ValueSyntax& syntax);
// {"name": .., "arguments": {..}}, also "tool_name" and "parameters". is_bare: no mark said that it is a call, so an
// object with other keys, or arguments that are no object, is none.
std::unique_ptr<CallReader> make_object_reader(Message& message, bool is_bare);
// name(key=value, ..) in Python.
std::unique_ptr<CallReader> make_python_reader(Message& message);
// The value of a parameter as elements, up to the end of element `key`; before every tag stands `prefix`. Items of
// lists are elements called "item"; numbers, true, false and null are such, other text is a string.
std::unique_ptr<CallReader> make_nested_reader(Message& message, std::string_view prefix, std::string_view key,
                                               bool is_text);

}  // namespace mote::reply
