// Fills the filter of segment/junctions.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tokenizer/segment/tables.h"

namespace mote::tokenizer {

// text_of(id): the bytes that a token stands for. Leaves the model without a filter where a merge makes something else
// than both texts one behind another.
void build_junctions(const std::function<std::string(uint32_t)>& text_of, fb::ModelT& model);

}  // namespace mote::tokenizer
