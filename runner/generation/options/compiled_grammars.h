// Grammars by their sources, compiled once while they are used again.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "runner/generation/options/option_table.h"

namespace mote {

// Compiled for the model's own vocabulary, or kept from one of the last calls for the model. is_cancelled: asked now
// and then while compiling; may be empty. Thread safety: any thread. Errors: those of vocabulary_of; kInvalidArgument
// with the place in the source; kCancelled.
Result<std::shared_ptr<const constraints::Grammar>> compiled_grammar(const Model& model, const std::string& source,
                                                                     const constraints::GrammarOptions& options,
                                                                     const std::function<bool()>& is_cancelled = {});

// nullptr: none is asked for. Errors: also kInvalidArgument where several are.
Result<std::shared_ptr<const constraints::Grammar>> compiled_grammar(const Model& model, const GrammarRequest& request);

}  // namespace mote
