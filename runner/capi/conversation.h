// Conversations rendered with a model's own template.
#pragma once

#include "runner/capi/handles.h"

namespace mote::capi {

// Errors: kInvalidArgument naming the field, those of the template.
Result<Prompt> render(const ChatTemplate& chat_template, const mote_conversation& conversation);

// The template sees bos_token and eos_token as it does in transformers, unless the conversation's variables name them:
// as text, undefined where the model has none. Errors: those of `render`; kInvalidArgument if the file has no template.
Result<Prompt> render_with_own(const Model& model, const mote_conversation& conversation);

}  // namespace mote::capi
