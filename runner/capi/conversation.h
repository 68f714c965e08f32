// Conversations rendered with a model's own template.
#pragma once

#include "runner/capi/handles.h"

namespace mote::capi {

// Points into the conversation. Errors: kInvalidArgument naming the field.
Result<TemplateInput> read_conversation(const mote_conversation& conversation);

// Errors: those of the template and of the conversation; kInvalidArgument if the file has no template.
Result<Prompt> render_with_own(const Model& model, const mote_conversation& conversation);

}  // namespace mote::capi
