#include <algorithm>
#include <set>

#include "runner/cli/graph.h"
#include "runner/cli/terminal.h"

namespace mote::cli {
namespace {

// A message of protobuf: https://protobuf.dev/programming-guides/encoding. The numbers of fields are those of
// onnx.proto.
class Message {
 public:
  Message& integer(uint32_t field, int64_t value) {
    varint(uint64_t{field} << 3);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& bytes(uint32_t field, const std::string& value) {
    varint(uint64_t{field} << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return bytes(field, value.bytes_); }
  const std::string& str() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

constexpr int64_t kIrVersion = 10;
constexpr int64_t kStringAttribute = 3;

// TensorProto.DataType of a dtype, or of the elements that a quantised format stands for.
int64_t data_type(const std::string& format) {
  static const std::map<std::string, int64_t> kTypes = {{"float32", 1}, {"uint8", 2}, {"int8", 3},     {"int32", 6},
                                                        {"int64", 7},   {"bool_", 9}, {"float16", 10}, {"bfloat16", 16},
                                                        {"int4", 22},   {"int2", 26}};
  const auto found = kTypes.find(format.substr(0, format.find(' ')));
  return found == kTypes.end() ? 3 : found->second;  // of 3, 5 or 6 bits: int8
}

Message entry(const std::string& key, const std::string& value) { return Message().bytes(1, key).bytes(2, value); }

Message value_info(const GraphValue& value) {
  Message shape;
  for (const std::string& size : value.shape) {
    const bool is_number = size.find_first_not_of("0123456789") == std::string::npos;
    shape.message(1, is_number ? Message().integer(1, std::stoll(size)) : Message().bytes(2, size));
  }
  const Message tensor = Message().integer(1, data_type(value.dtype)).message(2, shape);
  return Message().bytes(1, value.name).message(2, Message().message(1, tensor));
}

Message initializer(const GraphWeight& weight) {
  Message tensor;
  for (const int64_t size : weight.shape) tensor.integer(1, size);
  return tensor.integer(2, data_type(weight.format))
      .bytes(8, weight.name)
      .bytes(12, weight.format + ", " + std::to_string(weight.bytes) + " bytes, in the .mote file");
}

Message node_message(const Graph& graph, const GraphNode& node) {
  Message message;
  for (const GraphNode::Input& input : node.inputs) {
    message.bytes(1, input.weight != nullptr ? input.weight->name
                     : input.value >= 0      ? graph.values.at(input.value).name
                                             : "");
  }
  for (const int64_t output : node.outputs) message.bytes(2, graph.values.at(output).name);
  const size_t dot = node.op.find('.');
  message.bytes(3, node.module + " #" + std::to_string(node.index)).bytes(4, node.op.substr(dot + 1));
  for (const auto& [key, value] : node.settings)
    message.message(5, Message().bytes(1, key).bytes(4, value).integer(20, kStringAttribute));
  message.bytes(7, dot == std::string::npos ? "mote" : node.op.substr(0, dot));
  message.message(9, entry("namespace", node.module));
  for (const auto& [key, value] : node.about) message.message(9, entry(key, value));
  return message;
}

}  // namespace

std::string onnx_bytes(const Graph& graph) {
  Message to;
  std::set<std::string> domains;
  std::set<std::string> weights;
  for (const GraphNode& node : graph.nodes) {
    to.message(1, node_message(graph, node));
    domains.insert(node.op.substr(0, node.op.find('.')));
  }
  to.bytes(2, graph.name);
  for (const GraphNode& node : graph.nodes) {
    for (const GraphNode::Input& input : node.inputs)
      if (input.weight != nullptr && weights.insert(input.weight->name).second)
        to.message(5, initializer(*input.weight));
  }
  for (const int64_t input : graph.inputs) to.message(11, value_info(graph.values.at(input)));
  for (const int64_t output : graph.outputs) to.message(12, value_info(graph.values.at(output)));
  for (const GraphNode& node : graph.nodes) {
    for (const int64_t output : node.outputs) to.message(13, value_info(graph.values.at(output)));
  }
  Message model;
  model.integer(1, kIrVersion).bytes(2, "mote").message(7, to);
  for (const std::string& domain : domains) model.message(8, Message().bytes(1, domain).integer(2, 1));
  return model.str();
}

}  // namespace mote::cli
