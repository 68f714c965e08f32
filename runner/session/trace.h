// A session's profile as a Chrome trace.
#pragma once

#include <string>

#include "runner/session/session.h"

namespace mote {

// A JSON object that chrome://tracing and Perfetto open: "traceEvents" holds one complete event ("ph": "X", times in
// microseconds) a call of a method, with args tokens, and inside of it one an instruction, named as its op, with args
// instruction, origin (its place in the Hugging Face module), bytes and macs. "otherData": model, threads, and how many
// calls and instructions were forgotten because there were too many.
std::string chrome_trace(const Session& session, const Profile& profile);

}  // namespace mote
