// The tokens of a model as bytes, for grammars.
#pragma once

#include <memory>

#include "base/status.h"
#include "runner/grammars/vocabulary.h"
#include "runner/model/model.h"

namespace mote {

// Errors: kInvalidArgument if the file has no tokenizer, or one whose tokens have no bytes of their own. Cost: the
// first call for a model reads the whole vocabulary.
Result<std::shared_ptr<const constraints::Vocabulary>> vocabulary_of(const Model& model);

}  // namespace mote
