// A .motew file: the weights of programs that share them. docs/file-format.md describes it.
#pragma once

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
// that the program was exported with: a comparison of checksums, which reads the header only.
// Errors: those of SourceBytes::take; kInvalidProgram naming the file and the field; kInvalidArgument if a path is
// given and the weights are in the program's file, or none is given and the program's file has no folder.
Status add_weights_file(Mapped& mapped, const fb::Program& program, const WeightsFrom& from);

}  // namespace mote
