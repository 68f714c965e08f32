#include "runner/generation/vocabulary.h"

namespace mote {

using constraints::Vocabulary;

Result<std::shared_ptr<const Vocabulary>> vocabulary_of(const Model& model) {
  MOTE_ASSIGN(const Tokenizer* tokenizer, model.require_tokenizer());
  return model.derived<Vocabulary>([&]() -> Result<std::shared_ptr<const Vocabulary>> {
    MOTE_ASSIGN(std::vector<std::string> texts, tokenizer->token_texts());
    texts.resize(static_cast<size_t>(model.vocab_size()));  // ids beyond the tokenizer's are tokens of nothing
    return Vocabulary::make(std::move(texts), {model.eos_token_ids().begin(), model.eos_token_ids().end()});
  });
}

}  // namespace mote
