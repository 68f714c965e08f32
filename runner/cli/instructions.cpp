#include "runner/cli/instructions.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "runner/cli/fitted_table.h"
#include "runner/cli/terminal.h"

namespace mote::cli {
namespace {

constexpr size_t kIndent = 8;

std::string shape_text(const Json& sizes) {
  std::string shape;
  for (const Json& size : sizes)
    shape += (shape.empty() ? "" : ", ") + (size.is_string() ? size.get<std::string>() : size.dump());
  return "[" + shape + "]";
}

std::string outputs_text(const Json& outputs) {
  std::string text;
  for (const Json& output : outputs) {
    text += (text.empty() ? "%" : ", %") + integer(output["value"]) + ": " + output["dtype"].get<std::string>() + " " +
            shape_text(output["shape"]);
  }
  return text;
}

std::string inputs_text(const Json& inputs) {
  std::string text;
  for (const Json& input : inputs) text += (text.empty() ? "" : ", ") + (input == -1 ? "-" : "%" + integer(input));
  return "(" + text + ")";
}

// "model.layers.0.self_attn.{q_proj+k_proj+v_proj}.weight": the names of weights that became one, without what they
// share.
std::string weight_name(const std::string& joined) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= joined.size();) {
    const size_t end = std::min(joined.find('+', begin), joined.size());
    names.push_back(joined.substr(begin, end - begin));
    begin = end + 1;
  }
  if (names.size() == 1) return joined;
  size_t front = names[0].size(), back = names[0].size();
  for (const std::string& name : names) {
    const auto most = std::min(name.size(), names[0].size());
    size_t same = 0;
    while (same < std::min(front, most) && name[same] == names[0][same]) ++same;
    front = same;
    same = 0;
    while (same < std::min(back, most) && name[name.size() - 1 - same] == names[0][names[0].size() - 1 - same]) ++same;
    back = same;
  }
  front = front == 0 ? 0 : names[0].rfind('.', front - 1) + 1;
  const size_t dot = names[0].find('.', names[0].size() - back);
  back = dot == std::string::npos ? 0 : names[0].size() - dot;
  std::string inner;
  for (const std::string& name : names) {
    if (front + back > name.size()) return joined;
    inner += (inner.empty() ? "" : "+") + name.substr(front, name.size() - front - back);
  }
  return names[0].substr(0, front) + "{" + inner + "}" + names[0].substr(names[0].size() - back);
}

void print_weight(const Json& tensor, const std::string& label) {
  const std::string text = joined_in_lines({label + weight_name(tensor["name"]), tensor["format"],
                                            shape_text(tensor["shape"]), bytes_text(tensor["bytes"].get<uint64_t>())},
                                           kIndent + 2, kLineWidth - kIndent);
  std::printf("%*s%s\n", static_cast<int>(kIndent), "", dim(text, stdout).c_str());
}

}  // namespace

std::string ops_text(const Json& ops) {
  std::string text;
  for (const auto& [op, count] : ops.items())
    text += (text.empty() ? "" : ", ") + (count == 1 ? "" : integer(count) + " ") + op;
  return text;
}

void print_instruction(const Json& about, const Json& instruction, size_t index, size_t runner_width) {
  std::string runner = instruction["runs_on"].is_null() ? "view" : instruction["runs_on"].get<std::string>();
  runner.resize(std::max(runner_width, runner.size()), ' ');
  char number[32];
  std::snprintf(number, sizeof number, "%4zu", index);
  const std::string makes = outputs_text(instruction["outputs"]) + " = " + instruction["op"].get<std::string>() +
                            inputs_text(instruction["inputs"]);
  const bool is_delegate = instruction.contains("delegate");
  const Json* delegate = is_delegate ? &about["delegates"][instruction["delegate"].get<size_t>()] : nullptr;
  std::vector<std::string> parts = {number + (runner_width == 0 ? "" : "  " + runner) + "  " + makes};
  if (is_delegate) parts.push_back("(" + ops_text((*delegate)["ops"]) + ")");
  parts.push_back(instruction["origin"]);
  std::printf("%s\n", joined_in_lines(parts, kIndent).c_str());
  const Json& tensors = about["weights"]["tensors"];
  for (const Json& weight : instruction["weights"]) {
    const Json& value = instruction["inputs"][weight["input"].get<size_t>()];
    print_weight(tensors[weight["tensor"].get<size_t>()], "%" + integer(value) + " ");
  }
  if (!is_delegate) return;
  for (const Json& tensor : (*delegate)["weights"]) print_weight(tensors[tensor.get<size_t>()], "");
}

}  // namespace mote::cli
