// The contexts of a file: one, or several where the weights of its parts are too large for one.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backends/qnn/context.h"

namespace mote::qnn {

// Numbers of parts for each context: parts that read the same weights go to the same one.
std::vector<std::vector<size_t>> contexts_of(std::span<const ContextPart> parts);

// Thread safety: that of Context.
class Contexts {
 public:
  // Reads what earlier loads kept, compiles what is not there, and keeps that. Errors: as Context.compile.
  static Result<std::shared_ptr<Contexts>> load(const Library& library, std::span<const Graph> graphs,
                                                const DelegateSource& source, const Lost& lost);

  // As Context.execute.
  Status execute(size_t part, std::vector<Buffer> buffers, std::shared_ptr<const void> memory);
  uint64_t bytes() const;
  bool hangs() const;

 private:
  struct Place {
    size_t context = 0, graph = 0;
  };
  std::vector<std::shared_ptr<Context>> contexts_;
  std::vector<Place> places_;  // of the parts
};

}  // namespace mote::qnn
