// A graph given to QNN, node by node.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "backends/qnn/graph.h"
#include "backends/qnn/library.h"
#include "backends/qnn/weights.h"

namespace mote::qnn {

// A tensor of a value that is computed; the shape must live as long.
QnnTensor tensor_of(const fb::ValueT& value, const char* name);

class NodeWriter {
 public:
  NodeWriter(const Library& library, Handle graph, const Graph& from, const DelegatePart& part)
      : library_(library), graph_(graph), from_(from), part_(part), tensors_(from.part.values.size()) {}

  // Errors: what QNN reports, with the node's or value's number.
  Status write();
  const QnnTensor& tensor(uint32_t value) const { return tensors_[value]; }

 private:
  struct Blocks {
    std::vector<ScaleOffset> scales;
    std::vector<uint8_t> block_scales;
    BlockwiseExpansion expansion{};
  };

  Status add_value(uint32_t index);
  Status add_node(uint32_t index);
  Status add_params(const fb::NodeT& node, const std::string& name, std::vector<Param>* params);
  Status add_op(const std::string& name, const char* type, std::vector<QnnTensor> inputs,
                std::vector<QnnTensor> outputs, std::vector<Param> params = {});
  Status add_top(const fb::NodeT& node, const std::string& name);
  Status add_gather(const fb::NodeT& node, const std::string& name);
  // A tensor between the ops of one node.
  Result<QnnTensor> between(const std::string& name, DataType data_type, Shape shape, float scale = 0);
  Result<QnnTensor> indices(const std::string& name, DataType data_type, std::vector<uint32_t> numbers, Shape shape);

  const Library& library_;
  Handle graph_;
  const Graph& from_;
  const DelegatePart& part_;
  std::vector<QnnTensor> tensors_;
  // What the library may still read while nodes are added.
  std::deque<std::string> names_;
  std::deque<std::vector<uint32_t>> numbers_;
  std::deque<Blocks> blocks_;
};

}  // namespace mote::qnn
