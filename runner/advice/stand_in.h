// A model of which only the first bytes are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "runner/model/model.h"
#include "runner/program/source.h"

namespace mote {

struct StandIn {
  std::shared_ptr<const Model> model;  // for the CPU; its tokenizer cannot be opened
  uint64_t tokenizer_bytes = 0;        // of the file
};

// beginning: a .mote file, or its first bytes up to the end of its program (some hundred kilobytes); no more is read.
// Errors: kFileNotFound, kFileUnreadable; kInvalidArgument naming the bytes that are missing, and where the weights are
// in a file of their own; kOutOfMemory; those of Model::open.
Result<StandIn> open_stand_in(const Source& beginning);

// Numbers that every format of weights and caches takes as small ones of either sign.
void fill_with_small_numbers(std::span<std::byte> memory);

}  // namespace mote
