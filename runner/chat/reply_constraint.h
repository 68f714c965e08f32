// What a reply must be: text of a schema, or a call of a tool.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "runner/grammars/grammar.h"
#include "runner/model/model.h"

namespace mote {

enum class ToolChoice { kAuto, kNone, kRequired, kNamed };

struct ToolChoiceAndName {
  ToolChoice choice = ToolChoice::kAuto;
  std::string name;  // of kNamed
};

// `text`: auto, none or required, plain or as JSON, or {"type": "function", "function": {"name": ..}}; empty: auto.
// Errors: kInvalidArgument naming tool_choice.
Result<ToolChoiceAndName> read_tool_choice(std::string_view text);

struct ReplyConstraint {
  std::shared_ptr<const constraints::Grammar> grammar;  // nullptr: the reply is free
  bool is_call = false;  // the text is {"name": .., "arguments": ..}, which becomes a call of that tool
};

// tools: a JSON list of schemas, or empty; response_format: {"type": "text"}, {"type": "json_object"} or
// {"type": "json_schema", "json_schema": {"schema": ..}}, or empty. Errors: kInvalidArgument naming the field.
// Cost: a grammar is compiled when it is not among the last that the model's conversations asked for. is_cancelled:
// asked meanwhile; may be empty. Errors: also kCancelled.
Result<ReplyConstraint> reply_constraint(const Model& model, const ToolChoiceAndName& choice, std::string_view tools,
                                         std::string_view response_format, const std::function<bool()>& is_cancelled);

}  // namespace mote
