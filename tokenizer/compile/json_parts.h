// The components of a tokenizer.json.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tokenizer/compile/draft.h"
#include "tokenizer/compile/json.h"

namespace mote::tokenizer {

// Appends what `field` describes: read(field, type, component) makes one, and a Sequence is a list of them under
// `list_name`.
template <typename Component, typename Read>
Status read_components(const Field& field, const char* list_name, std::vector<std::unique_ptr<Component>>& components,
                       const Read& read) {
  if (field.is_null()) return {};
  MOTE_RETURN_IF_ERROR(field.require_object());
  const std::string type = field.type();
  if (type != "Sequence") {
    auto made = std::make_unique<Component>();
    MOTE_RETURN_IF_ERROR(read(field, type, *made));
    components.push_back(std::move(made));
    return {};
  }
  const Field list = field[list_name];
  MOTE_RETURN_IF_ERROR(list.require_array());
  for (size_t i = 0; i < list.json().size(); ++i)
    MOTE_RETURN_IF_ERROR(read_components(list[i], list_name, components, read));
  return {};
}

// Each appends what `field` describes; a Sequence appends its parts one behind another. null appends nothing.
// Errors: kInvalidTokenizer naming the field.
Status read_normalizers(const Field& field, std::vector<std::unique_ptr<fb::NormalizerT>>& normalizers);
Status read_pretokenizers(const Field& field, std::vector<std::unique_ptr<fb::PretokenizerT>>& pretokenizers);
Status read_processors(const Field& field, std::vector<std::unique_ptr<fb::ProcessorT>>& processors);
Status read_decoders(const Field& field, std::vector<std::unique_ptr<fb::DecoderT>>& decoders);

// `prepend_scheme` and the older `add_prefix_space` of a Metaspace.
Result<fb::PrependScheme> read_prepend_scheme(const Field& field);

// Fills the model and its vocabulary. Reads the pre-tokenizers of the draft.
Status read_model(const Field& field, Draft& draft);

// `added_tokens`. Reads the vocabulary and the normalizers of the draft.
Status read_added_tokens(const Field& field, size_t vocabulary_size, Draft& draft);

}  // namespace mote::tokenizer
