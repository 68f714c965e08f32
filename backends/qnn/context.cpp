#include "backends/qnn/context.h"

#include <cstring>

#include "backends/proof/deadline.h"
#include "backends/qnn/nodes.h"
#include "backends/qnn/weights.h"

namespace mote::qnn {
namespace {

// The simulator computes with shared weights, and then dies of reading the binary that it made of them.
#if defined(__ANDROID__)
constexpr uint32_t kShares = 1;
#else
constexpr uint32_t kShares = 0;
#endif

std::string graph_name(size_t index) { return format("part%zu", index); }

Status check_size(std::span<const ContextPart> parts, uint64_t* total) {
  Weights weights;
  for (const ContextPart& part : parts) add_weights(part, &weights);
  *total = bytes_of(weights);
  MOTE_REQUIRE(*total <= kMaxContextBytes, Code::kOutOfMemory,
               "its weights take %llu bytes as QNN stores them: a context holds at most %llu",
               static_cast<unsigned long long>(*total), static_cast<unsigned long long>(kMaxContextBytes));
  return {};
}

}  // namespace

void add_weights(const ContextPart& part, Weights* weights) {
  for (const auto& value : part.graph->part.values) {
    if (value->kind != fb::ValueKind::weight) continue;
    const uint32_t index = part.part->weights[static_cast<size_t>(value->index)].index;
    (*weights)[{index, value->form}] = static_bytes(*value);
  }
}

uint64_t bytes_of(const Weights& weights) {
  uint64_t total = 0;
  for (const auto& [weight, bytes] : weights) total += bytes;
  return total;
}

Context::~Context() {
  if (context_ != nullptr && !hangs_) library_.functions.context_free(context_, nullptr);
}

Status Context::call(std::chrono::nanoseconds patience, const char* what, std::function<ErrorHandle()> work) {
  if (!hangs_) {
    const auto run = [self = shared_from_this(), what, work = std::move(work)] {
      const std::lock_guard lock(self->mutex_);
      return qnn_status(work(), what);
    };
    if (const std::optional<Status> ended = proof::within(patience, run)) return *ended;
  }
  const std::string reason = format("QNN did not answer when it was to %s", what);
  if (!hangs_.exchange(true)) lost_(reason);
  return {Code::kInternal, reason};
}

Context::Compiled& Context::declare(const Graph& graph) {
  Compiled& compiled = compiled_.emplace_back();
  for (const uint32_t value : graph.reads) compiled.reads.push_back(tensor_of(graph.value(value), ""));
  for (const uint32_t value : graph.writes) compiled.writes.push_back(tensor_of(graph.value(value), ""));
  return compiled;
}

Result<std::shared_ptr<Context>> Context::compile(const Library& library, std::span<const ContextPart> parts,
                                                  const std::function<Status(size_t)>& begun, const Lost& lost) {
  const std::shared_ptr<Context> made(new Context(library, lost));
  MOTE_RETURN_IF_ERROR(at_place(parts.front().part->place, check_size(parts, &made->bytes_)));
  CustomConfig custom{kContextSharesWeights, {kShares, kShares}};
  const Config config{0, &custom};
  const Config* configs[] = {&config, nullptr};
  MOTE_RETURN_IF_ERROR(qnn_status(
      library.functions.context_create(library.backend, library.device, configs, &made->context_), "make a context"));
  for (size_t i = 0; i < parts.size(); ++i) {
    MOTE_RETURN_IF_ERROR(begun(i));
    MOTE_RETURN_IF_ERROR(at_place(parts[i].part->place, made->add(*parts[i].graph, *parts[i].part, i)));
  }
  return made;
}

Status Context::add(const Graph& graph, const DelegatePart& part, size_t index) {
  const Functions& f = library_.functions;
  Compiled& compiled = declare(graph);
  CustomConfig custom{kGraphPrecision, {kFloat16Precision, kFloat16Precision}};
  const Config config{0, &custom};
  const Config* configs[] = {&config, nullptr};
  const std::string name = graph_name(index);
  MOTE_RETURN_IF_ERROR(qnn_status(f.graph_create(context_, name.c_str(), configs, &compiled.graph), "make a graph"));
  NodeWriter writer(library_, compiled.graph, graph, part);
  MOTE_RETURN_IF_ERROR(writer.write());
  const auto compiles = [&f, made = compiled.graph] { return f.graph_finalize(made, nullptr, nullptr); };
  MOTE_RETURN_IF_ERROR(call(library_.patience_to_compile, "compile a graph", compiles));
  for (size_t i = 0; i < graph.reads.size(); ++i) compiled.reads[i].v1.id = writer.tensor(graph.reads[i]).v1.id;
  for (size_t i = 0; i < graph.writes.size(); ++i) compiled.writes[i].v1.id = writer.tensor(graph.writes[i]).v1.id;
  return {};
}

// The identifiers of the tensors of each graph, then the library's binary.
Status Context::write(const KeptFile& kept) const {
  const Functions& f = library_.functions;
  uint64_t size = 0, written = 0;
  MOTE_RETURN_IF_ERROR(qnn_status(f.context_get_binary_size(context_, &size), "tell the size of a context"));
  std::vector<uint32_t> ids;
  for (const Compiled& compiled : compiled_) {
    for (const QnnTensor& tensor : compiled.reads) ids.push_back(tensor.v1.id);
    for (const QnnTensor& tensor : compiled.writes) ids.push_back(tensor.v1.id);
  }
  const size_t head = ids.size() * sizeof(uint32_t);
  std::vector<std::byte> bytes(head + static_cast<size_t>(size));
  std::memcpy(bytes.data(), ids.data(), head);
  MOTE_RETURN_IF_ERROR(
      qnn_status(f.context_get_binary(context_, bytes.data() + head, size, &written), "give a context's binary"));
  MOTE_REQUIRE(written <= size, Code::kInternal, "QNN wrote more than it said");
  bytes.resize(head + static_cast<size_t>(written));
  return kept.write(bytes);
}

Result<std::shared_ptr<Context>> Context::read(const Library& library, std::span<const ContextPart> parts,
                                               const KeptFile& kept, const Lost& lost) {
  const Functions& f = library.functions;
  const std::shared_ptr<Context> made(new Context(library, lost));
  MOTE_ASSIGN(made->binary_, kept.read(2 * kMaxContextBytes));
  const std::span<const std::byte> bytes(made->binary_);
  size_t num_ids = 0;
  for (const ContextPart& part : parts) num_ids += part.graph->reads.size() + part.graph->writes.size();
  const size_t head = num_ids * sizeof(uint32_t);
  MOTE_REQUIRE(bytes.size() > head, Code::kFileChanged, "%s: ends early", kept.path.c_str());
  made->bytes_ = bytes.size() - head;
  const auto reads = [&library, binary = bytes.subspan(head), to = &made->context_] {
    return library.functions.context_create_from_binary(library.backend, library.device, nullptr, binary.data(),
                                                        binary.size(), to, nullptr);
  };
  MOTE_RETURN_IF_ERROR(made->call(library.patience, "read a context", reads));
  const std::byte* next = bytes.data();
  for (size_t i = 0; i < parts.size(); ++i) {
    Compiled& compiled = made->declare(*parts[i].graph);
    MOTE_RETURN_IF_ERROR(
        qnn_status(f.graph_retrieve(made->context_, graph_name(i).c_str(), &compiled.graph), "find a graph"));
    for (std::vector<QnnTensor>* list : {&compiled.reads, &compiled.writes}) {
      for (QnnTensor& tensor : *list) {
        std::memcpy(&tensor.v1.id, next, sizeof(uint32_t));
        next += sizeof(uint32_t);
      }
    }
  }
  return made;
}

Status Context::execute(size_t part, std::vector<Buffer> buffers, std::shared_ptr<const void> memory) {
  const auto run = [this, part, buffers = std::move(buffers), memory = std::move(memory)] {
    Compiled& compiled = compiled_[part];
    std::span<const Buffer> rest(buffers);
    for (std::vector<QnnTensor>* list : {&compiled.reads, &compiled.writes}) {
      for (QnnTensor& tensor : *list) {
        tensor.v1.buffer = {rest.front().data, static_cast<uint32_t>(rest.front().bytes)};
        rest = rest.subspan(1);
      }
    }
    return library_.functions.graph_execute(compiled.graph, compiled.reads.data(),
                                            static_cast<uint32_t>(compiled.reads.size()), compiled.writes.data(),
                                            static_cast<uint32_t>(compiled.writes.size()), nullptr, nullptr);
  };
  return call(library_.patience, "run a graph", run);
}

}  // namespace mote::qnn
