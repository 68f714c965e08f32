// The graphs of a file's parts, compiled by QNN into one context.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "backends/qnn/graph.h"
#include "backends/qnn/library.h"
#include "base/kept_file.h"

namespace mote::qnn {

// Data of a value that the caller gives or gets, of the value's size.
struct Buffer {
  void* data = nullptr;
  size_t bytes = 0;
};

// Thread safety: any thread; calls wait for each other.
class Context {
 public:
  // Compiles the graphs, a part each. Errors: kOutOfMemory for weights beyond kMaxContextBytes; what QNN reports.
  static Result<std::unique_ptr<Context>> compile(const Library& library, std::span<const Graph> graphs,
                                                  const DelegateSource& source);
  // What `kept` has of an earlier compile. Errors: as KeptFile.read; what QNN reports.
  static Result<std::unique_ptr<Context>> read(const Library& library, std::span<const Graph> graphs,
                                               const KeptFile& kept);
  Status write(const KeptFile& kept) const;

  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  // buffers: of graph.reads, then of graph.writes
  Status execute(size_t part, std::span<const Buffer> buffers);
  uint64_t bytes() const { return bytes_; }

 private:
  struct Compiled {
    Handle graph = nullptr;
    std::vector<QnnTensor> reads, writes;
  };

  explicit Context(const Library& library) : library_(library) {}
  Status add(const Graph& graph, const DelegatePart& part, size_t index);
  Compiled& declare(const Graph& graph);

  const Library& library_;
  Handle context_ = nullptr;
  std::vector<Compiled> compiled_;
  uint64_t bytes_ = 0;             // of weights, or of what was read
  std::vector<std::byte> binary_;  // that was read: the library goes on reading shared weights there
  std::mutex mutex_;
};

}  // namespace mote::qnn
