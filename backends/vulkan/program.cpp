#include <algorithm>
#include <map>

#include "backends/vulkan/delegate.h"
#include "backends/vulkan/verdict.h"
#include "base/log.h"

namespace mote::vulkan {
namespace {

// Numbers of tokens whose plans have between them the pipelines of any other; and of those of single tokens and long
// prompts, which are all that is made ahead by the CPU, which takes longer for one than a call that waits for it.
constexpr int64_t kForeseen[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 33, 64, 128, 257, 512};
constexpr int64_t kForeseenByCpu[] = {1, 9, 64, 512};

// Of a part's weights those that products of codes read.
std::vector<bool> multiplied_weights(const Graph& graph) {
  std::vector<bool> is_multiplied(graph.num_weights);
  for (const GraphNode& node : graph.nodes) {
    if (node.op != fb::Op::product) continue;
    const GraphValue& weight = graph.values[static_cast<size_t>(node.inputs[3].value)];
    const bool is_tiles = weight.kind == fb::ValueKind::weight && weight.content == fb::Content::tiles;
    if (is_tiles) is_multiplied[weight.weight] = true;
  }
  return is_multiplied;
}

}  // namespace

Result<std::shared_ptr<Program>> Program::load(std::shared_ptr<const gpu::GpuContext> context, KeptFile kept,
                                               const DelegateSource& source) {
  std::shared_ptr<Program> program(new Program(std::move(context)));
  MOTE_ASSIGN(program->forced_, forced_product_features(program->context_->features()));
  program->set_features(program->context_->features());
  MOTE_ASSIGN(program->pipelines_, Pipelines::make(program->context_, std::move(kept)));
  program->weights_ = std::make_unique<DeviceWeights>(program->context_, *program->pipelines_);
  program->weights_->set_mapped_pages(source.mapped_pages);
  program->weights_->read_sums(row_sums_of(TriedDevice::of(*program->context_), source));
  std::vector<Graph> graphs;
  for (const DelegatePart& part : source.parts) {
    MOTE_ASSIGN(Graph graph, verify_graph(part));
    graphs.push_back(std::move(graph));
  }
  MOTE_RETURN_IF_ERROR(program->require_memory(source, graphs));
  for (size_t i = 0; i < source.parts.size(); ++i) {
    MOTE_RETURN_IF_ERROR(report(source.progress, static_cast<double>(i) / static_cast<double>(source.parts.size())));
    MOTE_RETURN_IF_ERROR(program->load_part(source.parts[i], std::move(graphs[i])));
  }
  if (source.check_unchanged) MOTE_RETURN_IF_ERROR(source.check_unchanged());
  MOTE_LOG_LINE(kInfo, "vulkan: %llu bytes of weights are read where the file is mapped, %llu take memory of %s",
                static_cast<unsigned long long>(program->file_backed_bytes()),
                static_cast<unsigned long long>(program->private_bytes()), program->context_->device_name().c_str());
  return program;
}

void Program::set_features(gpu::GpuFeatures features) {
  features_ = features;
  const bool is_cpu = context_->is_cpu();
  products_ = forced_  ? forms_that_use(*forced_ & features, is_cpu)
              : tuned_ ? without_others(*tuned_, features, is_cpu)
                       : usual_forms(features, is_cpu);
}

std::shared_ptr<Program> Program::without_parts() {
  std::shared_ptr<Program> program(new Program(context_));
  program->pipelines_ = pipelines_;
  program->weights_owner_ = shared_from_this();
  program->set_features(features_);
  return program;
}

// Before anything is uploaded.
Status Program::require_memory(const DelegateSource& source, const std::vector<Graph>& graphs) const {
  std::map<uint32_t, std::pair<const DelegateWeight*, bool>> read;  // by index in the file
  for (size_t part = 0; part < graphs.size(); ++part) {
    const std::vector<bool> multiplied = multiplied_weights(graphs[part]);
    for (size_t i = 0; i < multiplied.size(); ++i) {
      const DelegateWeight& weight = source.parts[part].weights[i];
      auto& [known, is_multiplied] = read[weight.index];
      known = &weight;
      is_multiplied = is_multiplied || multiplied[i];
    }
  }
  uint64_t bytes = 0;
  for (const auto& [index, each] : read) bytes += weights_->bytes_of(*each.first, each.second);
  return source.parts.empty() ? Status() : context_->require_free(bytes, source.parts.front().place + ": the weights");
}

Status Program::load_part(const DelegatePart& part, Graph graph) {
  LoadedPart loaded;
  const std::vector<bool> is_multiplied = multiplied_weights(graph);
  loaded.graph = std::move(graph);
  for (size_t i = 0; i < part.weights.size(); ++i) {
    const Result<const DeviceWeight*> weight = weights_->add(part.weights[i], is_multiplied[i]);
    if (!weight.ok()) return at_place(part.place, weight.status());
    loaded.weights.push_back(*weight);
  }
  const auto adopt = [&](const char* kind, const auto& own, auto* all, std::vector<size_t>* places) -> Status {
    for (const auto& state : own) {
      auto known = std::ranges::find_if(*all, [&](const auto& each) { return each.state == state.state; });
      if (known == all->end()) known = all->insert(known, state);
      MOTE_REQUIRE(*known == state, Code::kInvalidProgram, "%s: %s: state %d has another shape in another part",
                   part.place.c_str(), kind, state.state);
      places->push_back(static_cast<size_t>(known - all->begin()));
    }
    return {};
  };
  MOTE_RETURN_IF_ERROR(adopt("caches", loaded.graph.caches, &caches_, &loaded.caches));
  MOTE_RETURN_IF_ERROR(adopt("histories", loaded.graph.histories, &histories_, &loaded.histories));
  MOTE_RETURN_IF_ERROR(adopt("recurrences", loaded.graph.recurrences, &recurrences_, &loaded.recurrences));
  parts_.push_back(std::move(loaded));
  return {};
}

Result<Plan> Program::plan(size_t index, int64_t tokens, const Room& room) const {
  return make_plan(parts_[index].graph, parts_[index].weights, tokens, room.splits,
                   {context_->limits(), context_->is_cpu(), features_, context_->subgroup_size(), room.history_rows,
                    room.recorded_rows, products_});
}

Status Program::make_pipelines() const {
  const std::span<const int64_t> foreseen =
      context_->is_cpu() ? std::span<const int64_t>(kForeseenByCpu) : std::span<const int64_t>(kForeseen);
  for (size_t index = 0; index < parts_.size(); ++index) {
    for (const int64_t tokens : foreseen) {
      Result<Plan> made = plan(index, tokens, {});
      if (!made.ok() && made.status().code() == Code::kUnsupportedBackend) return made.status();
      if (!made.ok()) break;  // sizes that do not fit are an error of `prepare`, if such a call comes
      add_largest({0, 1, 1}, 1, &*made);
      for (const Dispatch& dispatch : made->dispatches) {
        MOTE_RETURN_IF_ERROR(
            at_place(parts_[index].graph.place,
                     pipelines_->find(dispatch.shader, dispatch.constants, dispatch.bindings.size()).status()));
      }
    }
  }
  return {};
}

}  // namespace mote::vulkan
