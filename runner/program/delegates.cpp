#include "runner/program/delegates.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <type_traits>

#include "base/crc32.h"
#include "base/parts.h"
#include "runner/program/cpu_count.h"
#include "runner/program/thread_pool.h"
#include "runner/program/validation.h"

namespace mote {
namespace {

Status check(Call& call) {
  MOTE_ASSIGN(const int64_t index, call.integer("delegate"));
  MOTE_REQUIRE(index >= 0, Code::kInvalidArgument, "delegate = %lld: must be an index into delegates",
               static_cast<long long>(index));
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    MOTE_REQUIRE(call.inputs[i] != nullptr && call.inputs[i]->bits == 0 && call.inputs[i]->is_contiguous(),
                 Code::kInvalidArgument, "inputs[%zu]: must be a contiguous activation", i);
  }
  return {};
}

Status run(const Call&, KernelContext&) { return {Code::kInternal, "a delegate ran as a kernel"}; }

MOTE_REGISTER_OP(.name = kDelegateOp, .check = check, .run = run);

std::string backend_names() {
  std::string names(kCpu);
  for (const Backend* backend : all_backends()) names += ", " + std::string(backend->name());
  return names;
}

// Those of texts.
std::vector<DelegateSample> samples_of(const fb::Program& program) {
  std::vector<DelegateSample> samples;
  for (const fb::GoldenSample* sample : *program.golden_samples()) {
    if (sample->method() != nullptr) continue;
    const auto ids = [](const auto& list) { return std::span(list.data(), list.size()); };
    samples.push_back({ids(*sample->prompt_ids()), ids(*sample->expected_ids()), ids(*sample->probe_ids()),
                       ids(*sample->probe_logits()), sample->tolerance()});
  }
  return samples;
}

// The attribute's text; empty: it has none.
std::string_view text_attribute(const fb::Instruction& instruction, std::string_view name) {
  const auto found = std::ranges::find(*instruction.attributes(), name,
                                       [](const fb::Attribute* attribute) { return text_of(*attribute->name()); });
  const bool has_text = found != instruction.attributes()->end() && found->text() != nullptr;
  return has_text ? text_of(*found->text()) : std::string_view();
}

// Those of a single token. Experts of which a token has some are not told: their products would be too many.
std::vector<DelegateProduct> cpu_products(const Verified& verified) {
  std::vector<DelegateProduct> products;
  for (const fb::Method* method : *verified.program().methods()) {
    if (target_of(*method) != kCpu || text_of(*method->name()) != "decode") continue;
    for (const fb::Instruction* instruction : *method->instructions()) {
      const std::string_view op = text_of(*instruction->op());
      if (op == "mote.moe_experts" || op == "mote.expert_linear") return {};
      if (op != "mote.linear" && op != "mote.gated_linear") continue;
      for (const int32_t input : *instruction->inputs()) {
        if (input < 0) continue;
        const int32_t weight = method->values()->Get(static_cast<uint32_t>(input))->weight();
        if (weight < 0) continue;
        const Tensor tensor = verified.weight_tensor(static_cast<uint32_t>(weight));
        if (tensor.rank == 2) products.push_back({tensor, text_attribute(*instruction, "activations")});
      }
    }
  }
  return products;
}

// `file`: its name, for messages.
Result<LoadedBackend> load_backend(const std::string& file, std::string_view name, DelegateSource source,
                                   Purpose purpose) {
  const Backend* backend = find_backend(name);
  const std::string place = file + ": " + std::string(name);
  if (const std::string part = "backends." + std::string(name); was_left_out(part))
    return left_out(part, Code::kUnsupportedBackend, file);
  MOTE_REQUIRE(backend != nullptr, Code::kUnsupportedBackend, "%s: this build has no such backend: it has %s",
               place.c_str(), backend_names().c_str());
  if (const Status status = backend->check_device(); !status.ok())
    return Status(Code::kUnsupportedBackend, place + ": " + status.message());
  if (purpose == Purpose::kDescribe) {
    MOTE_RETURN_IF_ERROR(backend->check(source));
    return LoadedBackend{backend, nullptr};
  }
  MOTE_ASSIGN(auto program, backend->load(std::move(source)));
  return LoadedBackend{backend, std::move(program)};
}

}  // namespace

std::string cache_prefix(const std::string& name, bool has_path, const std::string& cache_dir, uint32_t program_crc32) {
  const char* of_environment = std::getenv("MOTE_CACHE_DIR");
  const std::string folder = cache_dir.empty() && of_environment != nullptr ? of_environment : cache_dir;
  if (folder.empty()) return has_path ? name : "";
  return format("%s/%s-%08x", folder.c_str(), name.substr(name.rfind('/') + 1).c_str(), program_crc32);
}

Result<DelegateCall> DelegateParts::add(const fb::Instruction& instruction) {
  const auto attribute = std::ranges::find(*instruction.attributes(), "delegate",
                                           [](const fb::Attribute* a) { return text_of(*a->name()); });
  MOTE_REQUIRE(
      attribute != instruction.attributes()->end() && attribute->dims() != nullptr && attribute->dims()->size() == 1,
      Code::kInvalidProgram, "delegate: must be one number");
  const fb::Dim& dim = *attribute->dims()->Get(0);
  MOTE_REQUIRE(dim.tokens() == 0, Code::kInvalidProgram, "delegate: must not depend on T");
  const int64_t index = dim.constant();
  const auto* delegates = verified_.program().delegates();
  const int64_t count = delegates == nullptr ? 0 : delegates->size();
  MOTE_REQUIRE(index >= 0 && index < count, Code::kInvalidProgram, "delegate = %lld: the file has %lld delegates",
               static_cast<long long>(index), static_cast<long long>(count));
  is_used_.resize(static_cast<size_t>(count));
  MOTE_REQUIRE(!is_used_[static_cast<size_t>(index)], Code::kInvalidProgram,
               "delegate = %lld: another instruction runs it", static_cast<long long>(index));
  is_used_[static_cast<size_t>(index)] = true;
  const std::string_view name = text_of(*delegates->Get(static_cast<uint32_t>(index))->backend());
  auto found = std::ranges::find(sources_, name, &Source::backend);
  if (found == sources_.end()) found = sources_.insert(found, {name, empty_source()});
  found->source.parts.push_back(part(static_cast<uint32_t>(index)));
  return DelegateCall{static_cast<size_t>(found - sources_.begin()), found->source.parts.size() - 1};
}

DelegateSource DelegateParts::empty_source() const {
  const Mapped& file = verified_.file();
  DelegateSource source;
  source.program_crc32 = crc32(file.program_bytes());
  source.cache_prefix = cache_prefix(file.name(), file.has_path(), options_.cache_dir, source.program_crc32);
  if (file.has_path()) source.path = file.name();
  source.target = target_;
  source.file_bytes = file.file_bytes().size();
  source.file = owner_;
  source.mapped_pages = file.mapped_pages();
  source.file_owner = file.owner();
  source.guards_pages = options_.guards_pages;
  source.samples = samples_of(verified_.program());
  source.cpu_products = cpu_products(verified_);
  source.is_choice = options_.is_choice;
  source.tune = options_.tune;
  source.make_threads = [] { return make_thread_pool(std::min(available_cores(), kMaxThreads)); };
  source.check_unchanged = [&file] { return file.check_unchanged(); };
  return source;
}

DelegatePart DelegateParts::part(uint32_t index) const {
  const fb::Delegate& delegate = *verified_.program().delegates()->Get(index);
  DelegatePart part;
  part.place = format("%s: delegates[%u] (%s)", verified_.file().name().c_str(), index, delegate.backend()->c_str());
  part.blob = verified_.delegate(index);
  for (const int32_t weight : *delegate.weights()) {
    const auto i = static_cast<uint32_t>(weight);
    part.weights.push_back({i, text_of(*verified_.program().weights()->Get(i)->name()), verified_.weight_tensor(i)});
  }
  return part;
}

Result<std::vector<LoadedBackend>> DelegateParts::load(
    Purpose purpose, const std::function<Result<WholeMethods>(LoadedBackend)>& whole_methods,
    const Progress& progress) {
  std::vector<LoadedBackend> loaded;
  for (Source& source : sources_) {
    const auto done = static_cast<double>(loaded.size()), all = static_cast<double>(sources_.size());
    source.source.progress = part_of(progress, done / all, (done + 1) / all);
    if (sources_.size() == 1) {
      source.source.whole_methods = [&](std::shared_ptr<const DelegateProgram> program) {
        return whole_methods({find_backend(source.backend), std::move(program)});
      };
    }
    MOTE_ASSIGN(LoadedBackend backend,
                load_backend(verified_.file().name(), source.backend, std::move(source.source), purpose));
    loaded.push_back(std::move(backend));
  }
  return loaded;
}

std::string DelegateParts::why_not() const {
  for (const Source& source : sources_) {
    const Backend* backend = find_backend(source.backend);
    const std::string why = backend == nullptr ? "" : backend->why_not(source.source);
    if (!why.empty()) return why;
  }
  return {};
}

std::string DelegateParts::findings() const {
  std::string text;
  for (const Source& source : sources_) {
    const Backend* backend = find_backend(source.backend);
    const std::string found = backend == nullptr ? "" : backend->findings(source.source);
    if (!found.empty()) text += (text.empty() ? "" : "; ") + found;
  }
  return text;
}

Result<Delegates> Delegates::open(std::span<const LoadedBackend> backends, const DelegateOptions& options) {
  Delegates opened;
  for (const LoadedBackend& backend : backends) {
    MOTE_REQUIRE(backend.program != nullptr, Code::kInternal, "the program was bound only to be described");
    MOTE_ASSIGN(auto delegate, backend.program->open(options));
    opened.delegates_.push_back({backend.backend->name(), backend.program->has_state(), std::move(delegate)});
  }
  return opened;
}

bool is_of_device(Code code) {
  return code == Code::kInternal || code == Code::kOutOfMemory || code == Code::kUnsupportedBackend;
}

template <typename Outcome>
Outcome Delegates::noted(Outcome outcome) {
  Status status;
  if constexpr (std::is_same_v<Outcome, Status>) {
    status = outcome;
  } else {
    status = outcome.status();
  }
  failure_ = is_of_device(status.code()) ? std::move(status) : Status();
  return outcome;
}

Result<size_t> Delegates::prepare(const DelegateCall& call, const Call& operands, int64_t tokens) {
  return noted(delegates_[call.backend].delegate->prepare(call.part, operands, tokens));
}

Status Delegates::execute(const DelegateCall& call, const Call& operands, KernelContext& context,
                          std::vector<DelegateStep>* steps) {
  Delegate& delegate = *delegates_[call.backend].delegate;
  if (steps != nullptr) return noted(delegate.execute_measured(call.part, operands, context, steps));
  return noted(delegate.execute(call.part, operands, context));
}

Status Delegates::execute_largest(const DelegateCall& call, const Call& operands, KernelContext& context, size_t count,
                                  std::vector<DelegateStep>* steps) {
  Delegate& delegate = *delegates_[call.backend].delegate;
  delegate.want_largest(count);
  Status status = execute(call, operands, context, steps);
  delegate.want_largest(0);
  return status;
}

uint64_t Delegates::held_bytes() const {
  uint64_t bytes = 0;
  for (const Opened& opened : delegates_) bytes += opened.delegate->held_bytes();
  return bytes;
}

bool Delegates::seek(int64_t position) {
  bool all = true;
  for (const Opened& opened : delegates_) all = (!opened.has_state || opened.delegate->seek(position)) && all;
  return all;
}

int64_t Delegates::nearest(int64_t to) const {
  while (true) {
    int64_t near = to;
    for (const Opened& opened : delegates_) near = opened.has_state ? opened.delegate->nearest(near) : near;
    if (near == to) return to;
    to = near;
  }
}

int64_t Delegates::most_taken_back() const {
  int64_t most = std::numeric_limits<int64_t>::max();
  for (const Opened& opened : delegates_) most = std::min(most, opened.delegate->most_taken_back());
  return most;
}

Delegate* Delegates::recurrent_holder(int32_t state) const {
  for (const Opened& opened : delegates_) {
    if (opened.has_state && opened.delegate->has_recurrent(state)) return opened.delegate.get();
  }
  return nullptr;
}

Delegate* Delegates::cache_holder(int32_t state) const {
  for (const Opened& opened : delegates_) {
    if (opened.has_state && opened.delegate->cache_dtype(state).has_value()) return opened.delegate.get();
  }
  return nullptr;
}

Result<std::vector<NamedSnapshot>> Delegates::snapshot() {
  std::vector<NamedSnapshot> snapshots;
  for (const Opened& opened : delegates_) {
    if (!opened.has_state) continue;
    MOTE_ASSIGN(auto snapshot, noted(opened.delegate->snapshot()));
    if (snapshot == nullptr) return std::vector<NamedSnapshot>();
    snapshots.push_back({std::string(opened.backend), std::move(snapshot)});
  }
  return snapshots;
}

Result<bool> Delegates::restore(std::span<const NamedSnapshot> snapshots) {
  size_t next = 0;
  for (const Opened& opened : delegates_) {
    if (!opened.has_state) continue;
    const bool is_its = next < snapshots.size() && snapshots[next].backend == opened.backend;
    const Status status = is_its ? opened.delegate->restore(*snapshots[next].snapshot) : Status();
    if (!is_its || !status.ok()) (void)seek(0);
    if (!status.ok()) return status;
    if (!is_its) return false;
    ++next;
  }
  return next == snapshots.size();
}

Result<NamedSnapshot> Delegates::import(std::string_view backend, std::span<const std::byte> bytes) const {
  for (const Opened& opened : delegates_) {
    if (!opened.has_state || opened.backend != backend) continue;
    MOTE_ASSIGN(auto snapshot, opened.delegate->import(bytes));
    return NamedSnapshot{std::string(backend), std::move(snapshot)};
  }
  return Status(Code::kInvalidSession, "no delegate of this session has such a state");
}

}  // namespace mote
