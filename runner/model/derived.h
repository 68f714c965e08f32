// Values that are made of something at most once, by whoever needs them first.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/status.h"

namespace mote {

// One value of each type. Thread safety: any thread; who asks for a value that another thread makes waits for it.
class Derived {
 public:
  // `make` returns Result<std::shared_ptr<const T>>; what it returned first, also an error, is returned from then on.
  template <typename T, typename Make>
  Result<std::shared_ptr<const T>> get(const Make& make) const {
    Entry& entry = entry_of(&kKey<T>);
    std::call_once(entry.once, [&] {
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
    std::once_flag once;
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
