#include "runner/cli/graph.h"

#include "runner/cli/terminal.h"

namespace mote::cli {
namespace {

// "linear.rows" is a role of mote.linear and mote.gated_linear, "norm" of mote.rms_norm.
bool has_role(const std::string& op, const std::string& role) { return op.ends_with(role.substr(0, role.find('.'))); }

bool reads_format(const GraphNode& node, const std::string& format) {
  bool is_quantised = false;
  for (const GraphNode::Input& input : node.inputs) {
    if (input.weight == nullptr) continue;
    if (input.weight->format == format) return true;
    is_quantised = is_quantised || input.weight->format.find("group") != std::string::npos;
  }
  return !is_quantised && format == "float32";
}

std::string kernels_of(const GraphNode& node, const Json& choices) {
  std::string names;
  for (const Json& choice : choices) {
    if (!has_role(node.op, choice["role"]) || !reads_format(node, choice["weights"])) continue;
    names += (names.empty() ? "" : ", ") + choice["kernel"].get<std::string>();
  }
  return names;
}

GraphValue value_of(const Json& from, const std::string& name) {
  return {name, from["dtype"], from["shape"].get<std::vector<std::string>>()};
}

std::string setting_text(const Json& value) {
  if (value.is_string()) return value;
  std::string text;
  for (const Json& each : value)
    text += (text.empty() ? "" : ", ") + (each.is_string() ? each.get<std::string>() : each.dump());
  return text;
}

}  // namespace

std::string GraphValue::text() const {
  std::string sizes;
  for (const std::string& size : shape) sizes += (sizes.empty() ? "" : ",") + size;
  return dtype + "[" + sizes + "]";
}

Graphs::Graphs(const Json& about, const Json& kernels) : file_(about["file"]) {
  for (const Json& tensor : about["weights"]["tensors"])
    weights_.push_back({tensor["name"], tensor["format"], tensor["shape"], tensor["bytes"]});
  for (const Json& method : about["methods"]) add_method(about, method, kernels);
}

void Graphs::add_method(const Json& about, const Json& method, const Json& kernels) {
  Graph graph;
  const std::string label = method["label"];
  graph.name = about["targets"].size() > 1 ? method["target"].get<std::string>() + ": " + label : label;
  for (const Json& input : method["inputs"]) {
    const int64_t value = input["value"];
    graph.inputs.push_back(value);
    graph.values[value] = value_of(input, input["name"]);
    graph.sources[value] = {-1, graph.inputs.size() - 1};
  }
  for (const Json& instruction : method["instructions"]) {
    const size_t index = graph.nodes.size();
    graph.nodes.push_back(node(about, instruction, index, kernels));
    for (const Json& output : instruction["outputs"]) {
      const int64_t value = output["value"];
      graph.values[value] = value_of(output, "v" + std::to_string(value));
      graph.sources[value] = {static_cast<int64_t>(index), graph.nodes.back().outputs.size()};
      graph.nodes.back().outputs.push_back(value);
    }
  }
  graph.outputs = method["outputs"].get<std::vector<int64_t>>();
  graphs_.push_back(std::move(graph));
}

GraphNode Graphs::node(const Json& about, const Json& instruction, size_t index, const Json& kernels) const {
  GraphNode node;
  node.index = index;
  node.op = instruction["op"];
  node.module = instruction["origin"];
  for (const Json& input : instruction["inputs"]) node.inputs.push_back({input, nullptr});
  for (const Json& weight : instruction["weights"])
    node.inputs[weight["input"].get<size_t>()].weight = &weights_[weight["tensor"].get<size_t>()];
  for (const auto& [name, value] : instruction["attributes"].items())
    node.settings.emplace_back(name, setting_text(value));
  node.about.emplace_back("runs on", instruction["runs_on"].is_null() ? "nothing: a view" : instruction["runs_on"]);
  if (instruction.contains("delegate")) {
    const Json& delegate = about["delegates"][instruction["delegate"].get<size_t>()];
    for (const auto& [op, count] : delegate["ops"].items()) node.about.emplace_back("made of " + op, count.dump());
    for (const Json& weight : delegate["weights"]) node.inputs.push_back({-1, &weights_[weight.get<size_t>()]});
  } else if (const std::string names = kernels_of(node, kernels); !names.empty()) {
    node.about.emplace_back("kernel", names);
  }
  return node;
}

}  // namespace mote::cli
