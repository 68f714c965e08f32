// Which rows go to which expert. A choice is an expert that the router chose for a token.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kernels/ops/linear/activations.h"
#include "kernels/support/scratch.h"
#include "kernels/tensor.h"

namespace mote {

// The N x K choices sorted by expert, by token within one. Arrays lie in scratch memory.
struct Routing {
  int32_t* tokens = nullptr;   // [choices] token of the i-th sorted choice
  int32_t* places = nullptr;   // [N, K] place of a choice among the sorted ones
  int32_t* offsets = nullptr;  // [experts + 1] first sorted choice of an expert
  int32_t* active = nullptr;   // [num_active] experts that were chosen
  int64_t num_active = 0;
  int32_t* block_of = nullptr;     // [choices] block of a sorted choice: no block holds two experts' choices
  int32_t* blocks = nullptr;       // [num_blocks + 1] first choice of a block
  int32_t* first_block = nullptr;  // [experts + 1] first block of an expert
  int64_t num_blocks = 0;

  // The sorted choices as rows of the tokens, or as rows of their own.
  RowOrder token_rows() const { return {tokens, block_of, blocks, num_blocks}; }
  RowOrder choice_rows() const { return {nullptr, block_of, blocks, num_blocks}; }

  int64_t first(int64_t expert) const { return offsets[expert]; }
  int64_t count(int64_t expert) const { return offsets[expert + 1] - offsets[expert]; }
};

// The most blocks: one for each choice, or all full ones and one more for each expert, whichever is less.
int64_t most_blocks(int64_t choices, int64_t experts);
size_t routing_bytes(int64_t choices, int64_t experts);

// indices: int64 [N, K] of any strides. Errors: kInvalidArgument for an index outside [0, experts).
Status route(const Tensor& indices, int64_t experts, Scratch& scratch, Routing& routing);

// Has the system read what memory lacks of the chosen experts' matrices, and nothing around them: a page that a product
// misses brings those of other experts with it.
void read_ahead(const Tensor& stack, const Routing& routing);

}  // namespace mote
