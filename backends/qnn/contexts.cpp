#include "backends/qnn/contexts.h"

#include <algorithm>
#include <limits>

#include "base/crc32.h"
#include "base/log.h"

namespace mote::qnn {
namespace {

struct Filled {
  Weights weights;
  std::vector<size_t> parts;
};

// What a context would hold more with these weights.
uint64_t added_bytes(const Weights& held, const Weights& more) {
  uint64_t bytes = 0;
  for (const auto& [weight, size] : more) bytes += held.contains(weight) ? 0 : size;
  return bytes;
}

// The context that a part adds least to, among those that it fits; the number of contexts, if it fits none.
size_t place_for(const std::vector<Filled>& contexts, const Weights& weights, uint64_t most) {
  size_t best = contexts.size();
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (size_t i = 0; i < contexts.size(); ++i) {
    const uint64_t added = added_bytes(contexts[i].weights, weights);
    if (added >= least || bytes_of(contexts[i].weights) + added > most) continue;
    best = i;
    least = added;
  }
  return best;
}

// Where what is compiled is kept, and for what.
KeptFile kept_context(const Library& library, const DelegateSource& source, size_t number, size_t count) {
  KeptFile kept;
  const std::string suffix = number == 0 ? "" : format("-%zu", number);
  if (!source.cache_prefix.empty())
    kept.path =
        source.cache_prefix + format(".qnn-context-%08x", crc32(std::as_bytes(std::span(source.target)))) + suffix;
  kept.identity = "qnn context 2; " + library.build +
                  format("; %08x %llu; %zu of %zu", source.program_crc32,
                         static_cast<unsigned long long>(source.file_bytes), number, count);
  kept.also_trusted = source.file_owner;
  return kept;
}

Result<std::shared_ptr<Context>> context_for(const Library& library, std::span<const ContextPart> parts,
                                             const DelegateSource& source, const KeptFile& kept,
                                             const std::function<Status(size_t)>& begun, const Lost& lost) {
  if (!kept.path.empty()) {
    Result<std::shared_ptr<Context>> read = Context::read(library, parts, kept, lost);
    if (read.ok()) return read;
    MOTE_LOG_LINE(kInfo, "qnn: compiling: %s", read.status().message().c_str());
  }
  MOTE_ASSIGN(std::shared_ptr<Context> made, Context::compile(library, parts, begun, lost));
  if (source.check_unchanged) MOTE_RETURN_IF_ERROR(source.check_unchanged());  // before what was compiled is kept
  if (!kept.path.empty()) {
    const Status written = made->write(kept);
    if (!written.ok()) MOTE_LOG_LINE(kInfo, "qnn: what was compiled is not kept: %s", written.message().c_str());
  }
  return made;
}

}  // namespace

std::vector<std::vector<size_t>> contexts_of(std::span<const ContextPart> parts) {
  uint64_t most = kMaxContextBytes;
  for (const ContextPart& part : parts) most = std::min(most, part.graph->part.context_bytes);
  std::vector<Filled> contexts;
  for (size_t i = 0; i < parts.size(); ++i) {
    Weights weights;
    add_weights(parts[i], &weights);
    const size_t place = place_for(contexts, weights, most);
    if (place == contexts.size()) contexts.emplace_back();
    contexts[place].weights.insert(weights.begin(), weights.end());
    contexts[place].parts.push_back(i);
  }
  std::vector<std::vector<size_t>> result;
  for (Filled& context : contexts) result.push_back(std::move(context.parts));
  return result;
}

Result<std::shared_ptr<Contexts>> Contexts::load(const Library& library, std::span<const Graph> graphs,
                                                 const DelegateSource& source, const Lost& lost) {
  std::vector<ContextPart> parts;
  for (size_t i = 0; i < graphs.size(); ++i) parts.push_back({&graphs[i], &source.parts[i]});
  const std::vector<std::vector<size_t>> division = contexts_of(parts);
  const auto made = std::make_shared<Contexts>();
  made->places_.resize(parts.size());
  size_t done = 0;
  for (size_t context = 0; context < division.size(); ++context) {
    std::vector<ContextPart> own;
    for (const size_t part : division[context]) {
      made->places_[part] = {context, own.size()};
      own.push_back(parts[part]);
    }
    const auto begun = [&](size_t graph) {
      return report(source.progress, static_cast<double>(done + graph) / static_cast<double>(parts.size()));
    };
    const KeptFile kept = kept_context(library, source, context, division.size());
    MOTE_ASSIGN(made->contexts_.emplace_back(), context_for(library, own, source, kept, begun, lost));
    done += own.size();
  }
  return made;
}

Status Contexts::execute(size_t part, std::vector<Buffer> buffers, std::shared_ptr<const void> memory) {
  const Place& place = places_[part];
  return contexts_[place.context]->execute(place.graph, std::move(buffers), std::move(memory));
}

uint64_t Contexts::bytes() const {
  uint64_t bytes = 0;
  for (const auto& context : contexts_) bytes += context->bytes();
  return bytes;
}

bool Contexts::hangs() const {
  return std::any_of(contexts_.begin(), contexts_.end(), [](const auto& context) { return context->hangs(); });
}

}  // namespace mote::qnn
