#include <algorithm>

#include "runner/cli/graph.h"
#include "runner/cli/terminal.h"

namespace mote::cli {
namespace {

Json pair_of(const std::string& key, const std::string& value) { return {{"key", key}, {"value", value}}; }

// "model/layers/0" of "model.layers.0"
std::string namespace_of(std::string module) {
  std::replace(module.begin(), module.end(), '.', '/');
  return module;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ",") + std::to_string(size);
  return "[" + text + "]";
}

std::string id_of_input(size_t index) { return "input " + std::to_string(index); }

Json edge(const Graph& graph, int64_t value, size_t input) {
  const Graph::Source& source = graph.sources.at(value);
  const bool is_input = source.node < 0;
  return {{"sourceNodeId", is_input ? id_of_input(source.output) : std::to_string(source.node)},
          {"sourceNodeOutputId", is_input ? "0" : std::to_string(source.output)},
          {"targetNodeInputId", std::to_string(input)}};
}

Json output_metadata(const Graph& graph, const std::vector<int64_t>& values) {
  Json result = Json::array();
  for (size_t i = 0; i < values.size(); ++i) {
    const GraphValue& value = graph.values.at(values[i]);
    result.push_back({{"id", std::to_string(i)},
                      {"attrs", {pair_of("__tensor_tag", value.name), pair_of("tensor_shape", value.text())}}});
  }
  return result;
}

Json node_json(const Graph& graph, const GraphNode& node) {
  Json attributes = Json::array();
  for (const auto& [key, value] : node.about) attributes.push_back(pair_of(key, value));
  for (const auto& [key, value] : node.settings) attributes.push_back(pair_of(key, value));
  Json edges = Json::array();
  Json inputs = Json::array();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const GraphNode::Input& input = node.inputs[i];
    if (input.weight != nullptr) {
      const std::string at = " (input " + std::to_string(i) + ")";
      attributes.push_back(pair_of("weight" + at, input.weight->name));
      attributes.push_back(pair_of("weight format" + at, input.weight->format + " " + shape_text(input.weight->shape)));
      attributes.push_back(pair_of("weight bytes" + at, std::to_string(input.weight->bytes)));
      inputs.push_back({{"id", std::to_string(i)}, {"attrs", {pair_of("__tensor_tag", input.weight->name)}}});
    } else if (input.value >= 0) {
      edges.push_back(edge(graph, input.value, i));
      inputs.push_back(
          {{"id", std::to_string(i)}, {"attrs", {pair_of("__tensor_tag", graph.values.at(input.value).name)}}});
    }
  }
  return {{"id", std::to_string(node.index)},
          {"label", node.op},
          {"namespace", namespace_of(node.module)},
          {"attrs", attributes},
          {"incomingEdges", edges},
          {"inputsMetadata", inputs},
          {"outputsMetadata", output_metadata(graph, node.outputs)}};
}

// Of each module and what is inside of it: instructions, and bytes of its weights.
Json module_attributes(const Graph& graph) {
  std::map<std::string, std::pair<size_t, std::map<const GraphWeight*, uint64_t>>> totals;
  for (const GraphNode& node : graph.nodes) {
    const std::string path = namespace_of(node.module);
    for (size_t end = 0;; end = path.find('/', end + 1)) {
      auto& [count, weights] = totals[path.substr(0, end)];  // "" first: the method
      ++count;
      for (const GraphNode::Input& input : node.inputs)
        if (input.weight != nullptr) weights[input.weight] = input.weight->bytes;
      if (end == std::string::npos || path.empty()) break;
    }
  }
  Json result = Json::object();
  for (const auto& [path, total] : totals) {
    uint64_t bytes = 0;
    for (const auto& [weight, size] : total.second) bytes += size;
    result[path] = {{"instructions", std::to_string(total.first)}, {"weights", bytes_text(bytes)}};
  }
  return result;
}

Json graph_json(const Graph& graph) {
  Json nodes = Json::array();
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    nodes.push_back({{"id", id_of_input(i)},
                     {"label", graph.values.at(graph.inputs[i]).name},
                     {"namespace", ""},
                     {"outputsMetadata", output_metadata(graph, {graph.inputs[i]})}});
  }
  for (const GraphNode& node : graph.nodes) nodes.push_back(node_json(graph, node));
  Json edges = Json::array();
  for (size_t i = 0; i < graph.outputs.size(); ++i) edges.push_back(edge(graph, graph.outputs[i], i));
  nodes.push_back({{"id", "outputs"}, {"label", "outputs"}, {"namespace", ""}, {"incomingEdges", edges}});
  return {{"id", graph.name}, {"nodes", nodes}, {"groupNodeAttributes", module_attributes(graph)}};
}

}  // namespace

std::string model_explorer_text(const Graphs& graphs) {
  Json all = Json::array();
  for (const Graph& graph : graphs.all()) all.push_back(graph_json(graph));
  const Json collection = {{"label", graphs.file()}, {"graphs", all}};
  return collection.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace mote::cli
