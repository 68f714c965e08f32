#include "runner/cli/graph.h"
#include "runner/cli/terminal.h"

namespace mote::cli {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + "\"";
}

// Netron shows the name of a node as its type, so the op comes first.
std::string id_of(const GraphNode& node) { return quoted(node.op + " " + std::to_string(node.index)); }

// Modules of the tree, with the nodes that are in them and in no module inside.
struct Module {
  std::map<std::string, Module> inside;
  std::vector<const GraphNode*> nodes;
};

class DotWriter {
 public:
  explicit DotWriter(const Graph& graph) : graph_(graph) {}

  std::string write() {
    text_ = "digraph " + quoted(graph_.name) + " {\n  node [shape=box, fontsize=10];\n";
    Module root;
    for (const GraphNode& node : graph_.nodes) {
      Module* module = &root;
      for (size_t begin = 0; begin < node.module.size();) {
        const size_t end = std::min(node.module.find('.', begin), node.module.size());
        module = &module->inside[node.module.substr(begin, end - begin)];
        begin = end + 1;
      }
      module->nodes.push_back(&node);
    }
    for (const int64_t input : graph_.inputs) {
      const GraphValue& value = graph_.values.at(input);
      text_ += "  " + quoted(value.name) + " [shape=ellipse, type=" + quoted(value.text()) + "];\n";
    }
    write_module(root, "", 1);
    for (const GraphNode& node : graph_.nodes) write_edges(node);
    text_ += "  outputs [shape=ellipse];\n";
    for (const int64_t output : graph_.outputs) write_edge(output, "outputs");
    return std::move(text_) + "}\n";
  }

 private:
  void write_module(const Module& module, const std::string& path, size_t depth) {
    const std::string indent(2 * depth, ' ');
    for (const GraphNode* node : module.nodes) write_node(*node, indent);
    for (const auto& [name, inside] : module.inside) {
      const std::string inner = path.empty() ? name : path + "." + name;
      text_ += indent + "subgraph " + quoted("cluster_" + inner) + " {\n" + indent + "  label=" + quoted(inner) + ";\n";
      write_module(inside, inner, depth + 1);
      text_ += indent + "}\n";
    }
  }

  void write_node(const GraphNode& node, const std::string& indent) {
    text_ += indent + id_of(node) + " [module=" + quoted(node.module);
    for (const auto& [key, value] : node.about) text_ += ", " + quoted(key) + "=" + quoted(value);
    for (const auto& [key, value] : node.settings) text_ += ", " + quoted(key) + "=" + quoted(value);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].weight == nullptr) continue;
      const GraphWeight& weight = *node.inputs[i].weight;
      text_ += ", " + quoted("weight of input " + std::to_string(i)) + "=" +
               quoted(weight.name + ": " + weight.format + ", " + std::to_string(weight.bytes) + " bytes");
    }
    text_ += "];\n";
  }

  void write_edges(const GraphNode& node) {
    for (const GraphNode::Input& input : node.inputs)
      if (input.weight == nullptr && input.value >= 0) write_edge(input.value, id_of(node));
  }

  void write_edge(int64_t value, const std::string& to) {
    const Graph::Source& source = graph_.sources.at(value);
    const std::string from =
        source.node < 0 ? quoted(graph_.values.at(value).name) : id_of(graph_.nodes[static_cast<size_t>(source.node)]);
    text_ += "  " + from + " -> " + to + " [label=" + quoted(graph_.values.at(value).text()) + ", fontsize=8];\n";
  }

  const Graph& graph_;
  std::string text_;
};

}  // namespace

std::string dot_text(const Graph& graph) { return DotWriter(graph).write(); }

}  // namespace mote::cli
