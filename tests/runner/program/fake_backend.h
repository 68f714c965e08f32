// Backends for tests that compute factor * (sum of inputs) + weight, and that fail where a test asks for it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/program/delegate.h"
#include "tests/runner/program/program_builder.h"

namespace mote::test {

// Of one backend; its sessions share it. A status that is not ok is what that call answers.
struct FakeControls {
  Status check_device, load, open, prepare, execute;
  std::string why_not;
  size_t scratch_bytes = 0;
  uint64_t held_bytes = 0;
  // A state that is only the position of the latest seek or restore.
  bool has_state = false;
  bool can_seek = true;

  // What it has seen.
  std::vector<DelegateSource> loaded;
  size_t asked = 0;  // of how many parts why_not was asked
  int num_opened = 0;
  std::vector<size_t> executed;  // parts
  int num_bad_scratch = 0;       // calls whose scratch was too small or not aligned
};

// Of "fake", "spare" and "third", which this file's user has in its build.
FakeControls& fake(const std::string& backend);
// As if no test had used them.
void reset_fakes();

// The blob of a part: it multiplies by `factor`.
Bytes fake_blob(float factor);

}  // namespace mote::test
