#include "runner/cli/profile_report.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "runner/cli/fitted_table.h"
#include "runner/cli/terminal.h"

namespace mote::cli {
namespace {

struct Row {
  std::string name;
  int64_t count = 0;
  double seconds = 0;
  double bytes = 0;
  double macs = 0;

  void add(const Json& event) {
    ++count;
    seconds += event["dur"].get<double>() * 1e-6;
    bytes += event["args"]["bytes"].get<double>();
    macs += event["args"]["macs"].get<double>();
  }
};

Row& row_named(std::vector<Row>& rows, const std::string& name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  if (found != rows.end()) return *found;
  rows.emplace_back().name = name;
  return rows.back();
}

// "model.layers.3" of "model.layers.3.mlp": up to the first part that is a number; without one, the whole origin.
std::string layer_of(const std::string& origin) {
  for (size_t begin = 0; begin < origin.size();) {
    const size_t end = std::min(origin.find('.', begin), origin.size());
    const bool is_number = end > begin && std::all_of(origin.begin() + static_cast<std::ptrdiff_t>(begin),
                                                      origin.begin() + static_cast<std::ptrdiff_t>(end),
                                                      [](unsigned char c) { return std::isdigit(c) != 0; });
    if (is_number) return origin.substr(0, end);
    begin = end + 1;
  }
  return origin;
}

Json to_json(const Row& row, const mote_limits& limits) {
  const double seconds = std::max(row.seconds, 1e-12);
  const double gb_s = row.bytes / seconds * 1e-9;
  const double gmac_s = row.macs / seconds * 1e-9;
  return {{"name", row.name},
          {"count", row.count},
          {"seconds", row.seconds},
          {"bytes", row.bytes},
          {"macs", row.macs},
          {"gb_s", gb_s},
          {"gop_s", 2 * gmac_s},
          {"of_read_limit", gb_s / limits.read_gb_s},
          {"of_int8_limit", gmac_s / limits.int8_gmac_s}};
}

Json to_json(const std::vector<Row>& rows, const mote_limits& limits) {
  Json result = Json::array();
  for (const Row& row : rows) result.push_back(to_json(row, limits));
  return result;
}

std::string percent(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", 100 * part);
  return text;
}

void add_row(FittedTable& table, const Json& row, const Json& summary) {
  const double calls = std::max(1.0, summary["calls"].get<double>());
  table.add({row["name"], number_text(row["count"].get<double>() / calls),
             duration_text(row["seconds"].get<double>() / calls),
             percent(row["seconds"].get<double>() / summary["seconds"].get<double>()),
             bytes_text(static_cast<uint64_t>(row["bytes"].get<double>() / calls)), number_text(row["gb_s"]),
             percent(row["of_read_limit"]), number_text(row["gop_s"]), percent(row["of_int8_limit"])});
}

}  // namespace

Json summarize(const Json& trace, const std::string& method, const mote_limits& limits) {
  std::vector<Row> ops;
  std::vector<Row> layers;
  Row all;
  all.name = "all";
  int64_t calls = 0;
  double seconds = 0;
  std::vector<std::pair<double, double>> spans;  // of the calls, in microseconds
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] != "call" || event["name"] != method) continue;
    ++calls;
    seconds += event["dur"].get<double>() * 1e-6;
    spans.emplace_back(event["ts"], event["ts"].get<double>() + event["dur"].get<double>());
  }
  std::set<std::tuple<size_t, int64_t, int64_t>> submissions;  // of a call's instruction
  int64_t dispatches = 0;
  size_t span = 0;  // calls and instructions are both in the order of time
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] != "op") continue;
    const double middle = event["ts"].get<double>() + event["dur"].get<double>() / 2;
    while (span < spans.size() && spans[span].second < middle) ++span;
    if (span == spans.size() || middle < spans[span].first) continue;
    row_named(ops, event["name"]).add(event);
    row_named(layers, layer_of(event["args"]["origin"])).add(event);
    all.add(event);
    if (event["args"].contains("submission")) ++dispatches;
    if (event["args"].contains("submission"))
      submissions.emplace(span, event["args"]["instruction"].get<int64_t>(),
                          event["args"]["submission"].get<int64_t>());
  }
  std::stable_sort(ops.begin(), ops.end(), [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  return {{"method", method},
          {"calls", calls},
          {"seconds", seconds},
          {"submissions", submissions.size()},
          {"dispatches", dispatches},
          {"all", to_json(all, limits)},
          {"by_op", to_json(ops, limits)},
          {"by_layer", to_json(layers, limits)}};
}

void print_summary(const Json& summary) {
  for (const char* kind : {"op", "layer"}) {
    FittedTable table({kind, "count", "time", "share", "bytes", "GB/s", "of limit", "GOP/s", "of limit"});
    for (const Json& row : summary[std::string("by_") + kind]) add_row(table, row, summary);
    add_row(table, summary["all"], summary);
    table.print(stdout);
    std::printf("\n");
  }
}

}  // namespace mote::cli
