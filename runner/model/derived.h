// Values that are computed from something when they are first needed, and then kept.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/once.h"
#include "base/status.h"

namespace mote {

// Keeps one value of each type. Thread safety: any thread; a thread that asks for a value that another one is making
// waits for it.
class Derived {
 public:
  // `make` returns a Result<std::shared_ptr<const T>>. What the first call made, a value or an error, is returned by
  // this call and all later ones.
  template <typename T, typename Make>
  Result<std::shared_ptr<const T>> get(const Make& make) const {
    Entry& entry = entry_of(&kKey<T>);
    entry.once.call([&] {
      Result<std::shared_ptr<const T>> made = make();
      if (made.ok()) {
        entry.value = *std::move(made);
      } else {
        entry.error = made.status();
      }
    });
    if (entry.error.has_value()) return *entry.error;
    return std::static_pointer_cast<const T>(entry.value);
  }

 private:
  struct Entry {
    Once once;
    std::shared_ptr<const void> value;
    std::optional<Status> error;
  };
  template <typename T> static constexpr char kKey = 0;

  Entry& entry_of(const void* key) const {
    const std::lock_guard lock(mutex_);
    return entries_[key];
  }

  mutable std::mutex mutex_;
  mutable std::map<const void*, Entry> entries_;
};

}  // namespace mote
