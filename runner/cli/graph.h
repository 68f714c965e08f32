// Methods as graphs, for programs that draw them.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace mote::cli {

using Json = nlohmann::ordered_json;

struct GraphWeight {
  std::string name;    // in the Hugging Face state dict; fused ones joined by '+'
  std::string format;  // "float32", "int4 group 32"
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
};

struct GraphValue {
  std::string name;  // of an input of the method; else "v" and its number
  std::string dtype;
  std::vector<std::string> shape;  // "1", "T", "2*T+1"
  std::string text() const;        // "float32[1,T,256]"
};

struct GraphNode {
  // What an instruction reads: a value, or a weight; neither: an optional input that is absent.
  struct Input {
    int64_t value = -1;
    const GraphWeight* weight = nullptr;
  };

  size_t index = 0;  // of the instruction
  std::string op;
  std::string module;  // "model.layers.0.self_attn"; "": the model itself
  std::vector<Input> inputs;
  std::vector<int64_t> outputs;                               // values
  std::vector<std::pair<std::string, std::string>> about;     // what else there is to know: "runs on", "kernel", ...
  std::vector<std::pair<std::string, std::string>> settings;  // attributes of the op
};

// One method. Not moved once its nodes point to its weights.
struct Graph {
  // Who makes a value: a node and which of its outputs, or, as node -1, an input of the method.
  struct Source {
    int64_t node = -1;
    size_t output = 0;
  };

  std::string name;  // "decode", or "xnnpack: decode" in a file with several targets
  std::map<int64_t, GraphValue> values;
  std::map<int64_t, Source> sources;
  std::vector<int64_t> inputs;
  std::vector<int64_t> outputs;
  std::vector<GraphNode> nodes;
};

// A file's methods. about: of mote_describe_file; kernels: the "choices" of mote_describe_kernels, or an empty list
class Graphs {
 public:
  Graphs(const Json& about, const Json& kernels);
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  const std::string& file() const { return file_; }
  const std::vector<Graph>& all() const { return graphs_; }

 private:
  void add_method(const Json& about, const Json& method, const Json& kernels);
  GraphNode node(const Json& about, const Json& instruction, size_t index, const Json& kernels) const;

  std::string file_;
  std::vector<GraphWeight> weights_;
  std::vector<Graph> graphs_;
};

// Model Explorer's collection of graphs, in JSON: every method, nodes nested as the modules are.
std::string model_explorer_text(const Graphs& graphs);
// DOT, clusters nested as the modules are. Graphviz and Netron read it.
std::string dot_text(const Graph& graph);
// ONNX without the bytes of the weights, for Netron: ops in domains of their own, which no ONNX runtime knows.
std::string onnx_bytes(const Graph& graph);

}  // namespace mote::cli
