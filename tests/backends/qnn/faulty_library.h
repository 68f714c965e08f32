// What a test asks of faulty_library.cpp in its own process.
#pragma once

#include <array>
#include <cstdint>

namespace mote::qnn::test {

// Calls that can fail: those that compile, keep, read and run.
inline constexpr std::array kCalls = {"context", "graph", "tensor", "node", "compile",
                                      "size",    "keep",  "read",   "find", "execute"};

// mote_test_arm: the number-th call from here on fails so; calls that hang return. number 0: none does
using Arm = void (*)(const char* call, const char* kind, int64_t number);
// mote_test_count: of calls since; of "", the faults that struck
using Count = int64_t (*)(const char* call);

}  // namespace mote::qnn::test
