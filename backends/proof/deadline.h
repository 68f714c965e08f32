// Calls of what may never return: drivers, and the runtimes of vendors.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/status.h"

namespace mote::proof {

// What `work` says, in a thread of its own. Nothing: it did not end within `patience` and goes on, whatever becomes of
// it, so all that it uses must be its own.
std::optional<Status> within(std::chrono::nanoseconds patience, const std::function<Status()>& work);

template <typename T>
std::optional<Result<T>> within(std::chrono::nanoseconds patience, const std::function<Result<T>()>& work) {
  const auto value = std::make_shared<std::optional<T>>();
  const std::optional<Status> ended = within(patience, [value, work]() -> Status {
    MOTE_ASSIGN(*value, work());
    return {};
  });
  if (!ended) return std::nullopt;
  return ended->ok() ? Result<T>(*std::move(*value)) : Result<T>(*ended);
}

}  // namespace mote::proof
