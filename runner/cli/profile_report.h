// What `bench --profile` says about a trace: time, bytes and products by op and by layer beside the machine's limits.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runner/capi/mote.h"

namespace mote::cli {

using Json = nlohmann::ordered_json;

// The instructions of all calls of `method` in a trace of mote_session_stop_profile:
// {"method", "calls", "seconds", "all": row, "by_op": [row], "by_layer": [row]}, a row being {"name", "count",
// "seconds", "bytes", "macs", "gb_s", "gop_s", "of_read_limit", "of_int8_limit"}. by_op: longest first, by_layer: as
// they run.
Json summarize(const Json& trace, const std::string& method, const mote_limits& limits);

// Prints it as two tables, a call each.
void print_summary(const Json& summary);

}  // namespace mote::cli
