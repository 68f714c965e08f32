// The runtime of a vendor, for tests: an asset is a folder with a file for the CPU, whose kernels compute each call
// from the states that it is given and from nothing else. Calls fail where they are told to.
#pragma once

#include <cstdint>
#include <string>

#include "backends/assets/library.h"

namespace mote::test {

enum class FakeCall : uint8_t { open, make_states, predict, read, write };
inline constexpr FakeCall kFakeCalls[] = {FakeCall::open, FakeCall::make_states, FakeCall::predict, FakeCall::read,
                                          FakeCall::write};
const char* name_of(FakeCall call);

enum class FakeFault : uint8_t {
  error,    // the call returns one
  memory,   // it throws std::bad_alloc
  refusal,  // it returns that there is no such thing here
  nan,      // of a prediction: outputs and states are no numbers
  wrong,    // of this prediction and all that follow: other logits
  hang,     // it does not return before release_hangs
  death,    // it ends the process
};
const char* name_of(FakeFault fault);
bool makes_sense(FakeCall call, FakeFault fault);

// The k-th call of that kind from now on fails; k = 0: none. Variables of the environment do the same for a
// process: MOTE_FAKE_FAULT=predict:error:3, and MOTE_FAKE_SLOW is how many milliseconds a prediction takes at least,
// MOTE_FAKE_IDENTITY and MOTE_FAKE_UNITS what the library says of itself.
void arm(FakeCall call, FakeFault fault, int64_t k);
inline void disarm() { arm(FakeCall::open, FakeFault::error, 0); }
// Since the latest arm.
int64_t num_calls(FakeCall call);
bool has_struck();
// Lets the calls that hang return, and waits until they have.
void release_hangs();
// The asset that a file for the CPU is.
Result<std::shared_ptr<assets::Asset>> open_fake(const std::string& path, std::span<const assets::Reference> functions);
// States and assets that exist.
int64_t num_objects();

}  // namespace mote::test
