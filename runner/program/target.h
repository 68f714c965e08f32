// Which of a file's targets is run on this device.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runner/program/program.h"

namespace mote {

inline constexpr std::string_view kAnyBackend = "auto";

// A target that was not taken, and why.
struct PassedOver {
  std::string target;
  std::string reason;
};

struct Chosen {
  std::shared_ptr<const Bound> bound;  // nullptr: none works here
  std::vector<PassedOver> passed_over;
};

// Binds the first target that works. They are tried in the file's order, but those come last whose backend says that
// the CPU kernels are faster on this device. Errors: what `progress` gives.
Result<Chosen> choose_target(const std::shared_ptr<const Verified>& verified, const BindOptions& options = {});

// What backends found out about targets on this device when they were loaded before, for people.
struct Finding {
  std::string target;
  std::string text;
};
// wanted: of one alone, so that no other's device is opened for it; empty: of all
std::vector<Finding> findings(const std::shared_ptr<const Verified>& verified, std::string_view wanted,
                              const BindOptions& options = {});

// Binds the target that is wanted by name, or with "auto" the one that choose_target takes, and logs that
// (MOTE_LOG=info). Errors: kInvalidArgument if the file has no target of that name; what bind says of that one; with
// "auto" what it says of each.
Result<Chosen> bind_target(Verified verified, std::string_view wanted, const BindOptions& options = {});

}  // namespace mote
