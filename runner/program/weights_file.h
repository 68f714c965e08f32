// A .motew file: the weights of programs that share them. docs/file-format.md describes it.
#pragma once

#include <array>
#include <string>

#include "runner/program/mapped.h"
#include "schema_generated.h"

namespace mote {

struct WeightsFrom {
  std::string path{};  // empty: the file that the program names, beside it
  LoadMode mode = LoadMode::kMap;
  Progress progress{};
};

// Adds to `mapped` the file of its weights, if the program says that they are in one, after a check that it is the one
// that the program was exported with: a comparison of checksums, which reads the header only. Of an asset only the name
// is checked: weights are made of it when they are needed.
// Errors: those of SourceBytes::take; kInvalidProgram naming the file and the field; kInvalidArgument if a path is
// given and the weights are in the program's file, or none is given and the program's file has no folder.
Status add_weights_file(Mapped& mapped, const fb::Program& program, const WeightsFrom& from);

inline constexpr uint64_t kWeightsOffset = 65536;  // in a .motew file, which begins with its header

// Whether a file is one with the weights of a segment. Errors: kInvalidProgram naming the field.
Status check_weights_header(const SourceBytes& file, const Mapped& program, const fb::Segment& segment);
// The header of a file with these weights.
std::array<std::byte, kHeaderBytes> weights_header(const fb::Segment& segment);
// Where the other file of a segment is. Errors: kInvalidArgument
Result<std::string> place_of_weights(const Mapped& mapped, const fb::Segment& segment, const std::string& given);

}  // namespace mote
