// Graphs as libQnnHtp.so is given them, computed in float32: of the ops that a small Llama without quantisation has.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/qnn/api.h"

namespace mote::qnn::test {

using Sizes = std::vector<uint32_t>;

struct Numbers {
  Sizes sizes;
  std::vector<float> data;

  size_t count() const;
};

class InterpretedGraph {
 public:
  // Gives the tensor its identifier and keeps what it holds.
  void add_tensor(QnnTensor* tensor);
  void add_node(const OpConfig& op);
  // Buffers are of float16. Returns: whether all ops are known
  bool execute(const QnnTensor* inputs, uint32_t num_inputs, QnnTensor* outputs, uint32_t num_outputs);

 private:
  struct Node {
    std::string type;
    std::vector<uint32_t> inputs;
    uint32_t output = 0;
    std::map<std::string, Sizes> lists;
    std::map<std::string, float> scalars;
  };
  bool compute(const Node& node);

  std::map<uint32_t, Numbers> values_;
  std::map<uint32_t, Sizes> lists_;  // tensors of whole numbers
  std::vector<Node> nodes_;
  uint32_t next_ = 1;
};

}  // namespace mote::qnn::test
