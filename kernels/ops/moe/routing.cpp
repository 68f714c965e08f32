#include "kernels/ops/moe/routing.h"

#include <algorithm>

#include "base/large_files.h"
#include "kernels/formats.h"

namespace mote {

namespace {

void make_blocks(int64_t experts, Scratch& scratch, Routing& routing) {
  const int64_t choices = routing.offsets[experts];
  routing.block_of = scratch.take<int32_t>(choices);
  routing.blocks = scratch.take<int32_t>(most_blocks(choices, experts) + 1);
  routing.first_block = scratch.take<int32_t>(experts + 1);
  for (int64_t expert = 0; expert < experts; ++expert) {
    routing.first_block[expert] = static_cast<int32_t>(routing.num_blocks);
    for (int64_t i = 0; i < routing.count(expert); ++i) {
      const int64_t place = routing.first(expert) + i;
      if (i % kTokenBlock == 0) routing.blocks[routing.num_blocks++] = static_cast<int32_t>(place);
      routing.block_of[place] = static_cast<int32_t>(routing.num_blocks - 1);
    }
  }
  routing.first_block[experts] = static_cast<int32_t>(routing.num_blocks);
  routing.blocks[routing.num_blocks] = static_cast<int32_t>(choices);
}

}  // namespace

int64_t most_blocks(int64_t choices, int64_t experts) { return std::min(choices, choices / kTokenBlock + experts); }

size_t routing_bytes(int64_t choices, int64_t experts) {
  return 3 * array_bytes<int32_t>(choices) + 2 * array_bytes<int32_t>(experts + 1) + array_bytes<int32_t>(experts) +
         array_bytes<int32_t>(most_blocks(choices, experts) + 1);
}

Status route(const Tensor& indices, int64_t experts, Scratch& scratch, Routing& routing) {
  const int64_t tokens = indices.size(0), per_token = indices.size(1);
  routing.tokens = scratch.take<int32_t>(tokens * per_token);
  routing.places = scratch.take<int32_t>(tokens * per_token);
  routing.offsets = scratch.take<int32_t>(experts + 1);
  routing.active = scratch.take<int32_t>(experts);
  const auto expert_of = [&](int64_t token, int64_t slot) {
    return indices.as<int64_t>()[token * indices.stride(0) + slot * indices.stride(1)];
  };
  std::fill(routing.offsets, routing.offsets + experts + 1, 0);
  for (int64_t i = 0; i < tokens * per_token; ++i) {
    const int64_t expert = expert_of(i / per_token, i % per_token);
    MOTE_REQUIRE(expert >= 0 && expert < experts, Code::kInvalidArgument, "indices holds expert %lld: must be 0..%lld",
                 static_cast<long long>(expert), static_cast<long long>(experts - 1));
    ++routing.offsets[expert + 1];
  }
  for (int64_t expert = 0; expert < experts; ++expert) {
    if (routing.offsets[expert + 1] > 0) routing.active[routing.num_active++] = static_cast<int32_t>(expert);
    routing.offsets[expert + 1] += routing.offsets[expert];
  }
  // Filling moves each offset to its expert's end, which is where the next one begins: shifted back afterwards.
  for (int64_t i = 0; i < tokens * per_token; ++i) {
    const int32_t place = routing.offsets[expert_of(i / per_token, i % per_token)]++;
    routing.tokens[place] = static_cast<int32_t>(i / per_token);
    routing.places[i] = place;
  }
  std::copy_backward(routing.offsets, routing.offsets + experts, routing.offsets + experts + 1);
  routing.offsets[0] = 0;
  make_blocks(experts, scratch, routing);
  return Status();
}

void read_ahead(const Tensor& stack, const Routing& routing) {
  const int64_t bytes = matrix_bytes(stack);
  for (int64_t i = 0; i < routing.num_active; ++i)
    read_ahead({stack.as<const std::byte>() + routing.active[i] * bytes, static_cast<size_t>(bytes)});
}

}  // namespace mote
