// Functions of recurrent states.
#include <algorithm>

#include "backends/vulkan/planner.h"

namespace mote::vulkan {
namespace {

// Of a row of a state: the least number of lanes with which each has few elements.
int64_t lanes_of_width(int64_t width) {
  constexpr int64_t kMostLanes = 16, kItems = 8;
  int64_t lanes = 1;
  while (lanes < kMostLanes && lanes * kItems < width) lanes *= 2;
  return lanes;
}

}  // namespace

Status Planner::add_short_conv() {
  const auto history = std::ranges::find_if(graph_.histories,
                                            [&](const GraphHistory& each) { return each.state == node_->integers[0]; });
  if (history == graph_.histories.end())
    return invalid("state %lld: has no history", static_cast<long long>(node_->integers[0]));
  MOTE_ASSIGN(const RowsView x, rows("inputs[0]", node_->inputs[0]));
  if (x.outer != 1 || x.columns != history->columns || x.count() > device_.history_rows) {
    return invalid("inputs[0]: must be at most %lld rows of %d", static_cast<long long>(device_.history_rows),
                   history->columns);
  }
  const int64_t length = history->rows + 1;
  MOTE_ASSIGN(const Bound weight, parameter("inputs[1]", node_->inputs[1], x.columns * length));
  MOTE_ASSIGN(const Bound bias, parameter("inputs[2]", node_->inputs[2], x.columns));
  MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], x.count() * x.columns));
  const auto index = static_cast<uint32_t>(history - graph_.histories.begin());
  return push({.shader = Shader::short_conv,
               .constants = {bias.kind != Bind::none},
               .groups = spread(ceil_div(x.count() * x.columns, kLanes)),
               .bindings = {bound(x.view), weight, bias, {Bind::start, 0, 0}, {Bind::history, index, 0}, bound(y)},
               .writes = 0b110000,
               .push = {word(x.columns), word(x.count()), word(length), word(history->rows + device_.history_rows),
                        word(x.view.offset), word(x.view.strides[1])}});
}

// Offset and strides of a token, a head and an element.
Result<std::array<uint32_t, 4>> Planner::series(const char* name, const GraphView& from,
                                                std::span<const int64_t> sizes) const {
  MOTE_ASSIGN(const View made, floats(name, from));
  if (!std::ranges::equal(made.sizes, sizes))
    return invalid("%s: is not of the sizes of the state and %lld tokens", name, static_cast<long long>(tokens_));
  return std::array{word(made.offset), word(made.strides[1]), word(made.strides[2]),
                    made.strides.size() > 3 ? word(made.strides[3]) : 0};
}

Status Planner::add_linear_attention() {
  const auto found = std::ranges::find_if(
      graph_.recurrences, [&](const GraphRecurrence& each) { return each.state == node_->integers[0]; });
  if (found == graph_.recurrences.end())
    return invalid("state %lld: is no recurrence", static_cast<long long>(node_->integers[0]));
  const GraphRecurrence& state = *found;
  const int64_t keys[] = {1, tokens_, state.key_heads, state.width}, decays[] = {1, tokens_, state.heads, state.width};
  const int64_t values[] = {1, tokens_, state.heads, state.rows};
  const std::span<const int64_t> scalars = std::span(values).first(3);
  const std::array<std::pair<const char*, std::span<const int64_t>>, 5> wanted = {
      {{"inputs[0]", keys},
       {"inputs[1]", keys},
       {"inputs[2]", values},
       {"inputs[3]", state.decays == 1 ? scalars : decays},
       {"inputs[4]", scalars}}};
  if ((node_->inputs[3].value < 0) != (state.decays == 0)) return invalid("inputs[3]: must be there for decays alone");
  std::vector<uint32_t> words = {word(tokens_), word(state.heads), word(state.heads / state.key_heads),
                                 word(state.rows), word(std::max<int64_t>(device_.recorded_rows, 1))};
  std::vector<Bound> bindings;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const GraphView& input = node_->inputs[i];
    std::array<uint32_t, 4> each{};
    if (input.value >= 0) { MOTE_ASSIGN(each, series(wanted[i].first, input, wanted[i].second)); }
    words.insert(words.end(), each.begin(), each.end());
    bindings.push_back(input.value < 0 ? Bound{} : bound(static_cast<uint32_t>(input.value)));
  }
  const int64_t rows = int64_t{state.heads} * state.rows, lanes = lanes_of_width(state.width);
  MOTE_ASSIGN(const View y, whole("outputs[0]", node_->outputs[0], tokens_ * rows));
  const auto index = static_cast<uint32_t>(found - graph_.recurrences.begin());
  for (const Bound& each : {Bound{Bind::start}, Bound{Bind::slots, index}, Bound{Bind::rows, index}, bound(y)})
    bindings.push_back(each);
  const int64_t products = node_->inputs[4].value < 0 ? 2 : 3;
  return push(
      {.shader = Shader::linear_attention,
       .constants = {word(lanes), word(state.width), word(ceil_div(state.width, lanes)), word(state.decays),
                     node_->inputs[4].value >= 0},
       .groups = spread(ceil_div(rows, kLanes / lanes)),
       .bindings = std::move(bindings),
       .writes = 0b111000000,
       .push = std::move(words),
       .cost = {.bytes = 4 * (2 * state.floats() + tokens_ * 3 * rows), .macs = products * tokens_ * state.floats()}});
}

}  // namespace mote::vulkan
