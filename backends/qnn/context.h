// Graphs of a file's parts, compiled by QNN into one context.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
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

struct ContextPart {
  const Graph* graph = nullptr;
  const DelegatePart* part = nullptr;
};

// Bytes of weights, by their indices in the program and their forms.
using Weights = std::map<std::pair<uint32_t, fb::WeightForm>, uint64_t>;
void add_weights(const ContextPart& part, Weights* weights);
uint64_t bytes_of(const Weights& weights);

// Is told the reason when a call of the library does not answer.
using Lost = std::function<void(const std::string&)>;

// Calls of the library that may take long are made in threads that nobody waits for longer than the library's patience;
// after one that did not answer none is made. Thread safety: any thread; calls wait for each other.
class Context : public std::enable_shared_from_this<Context> {
 public:
  // begun: is told the number of a part before it is compiled, and may fail
  // Errors: kOutOfMemory for weights beyond kMaxContextBytes; what QNN reports; begun's.
  static Result<std::shared_ptr<Context>> compile(const Library& library, std::span<const ContextPart> parts,
                                                  const std::function<Status(size_t)>& begun, const Lost& lost);
  // What `kept` has of an earlier compile. Errors: as KeptFile.read; what QNN reports.
  static Result<std::shared_ptr<Context>> read(const Library& library, std::span<const ContextPart> parts,
                                               const KeptFile& kept, const Lost& lost);
  Status write(const KeptFile& kept) const;

  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  // buffers: of graph.reads, then of graph.writes, in memory that lives as long as `memory`. Errors: kInternal.
  Status execute(size_t part, std::vector<Buffer> buffers, std::shared_ptr<const void> memory);
  uint64_t bytes() const { return bytes_; }
  bool hangs() const { return hangs_; }

 private:
  struct Compiled {
    Handle graph = nullptr;
    std::vector<QnnTensor> reads, writes;
  };

  Context(const Library& library, Lost lost) : library_(library), lost_(std::move(lost)) {}
  // work: uses this context and what it owns itself
  Status call(std::chrono::nanoseconds patience, const char* what, std::function<ErrorHandle()> work);
  Status add(const Graph& graph, const DelegatePart& part, size_t index);
  Compiled& declare(const Graph& graph);

  const Library& library_;
  const Lost lost_;
  Handle context_ = nullptr;
  std::vector<Compiled> compiled_;
  uint64_t bytes_ = 0;             // of weights, or of what was read
  std::vector<std::byte> binary_;  // that was read: the library goes on reading shared weights there
  std::mutex mutex_;
  std::atomic<bool> hangs_{false};
};

}  // namespace mote::qnn
