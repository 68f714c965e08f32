// What the files that ask Windows share. Paths and messages are UTF-8 in Mote and UTF-16 there.
#pragma once

#include <windows.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mote::windows {

// Owns a handle; none: INVALID_HANDLE_VALUE.
class Handle {
 public:
  Handle() = default;
  explicit Handle(HANDLE handle) : handle_(handle == nullptr ? INVALID_HANDLE_VALUE : handle) {}
  Handle(Handle&& other) noexcept : handle_(other.release()) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() {
    if (*this) ::CloseHandle(handle_);
  }

  explicit operator bool() const { return handle_ != INVALID_HANDLE_VALUE; }
  HANDLE get() const { return handle_; }
  // Gives it up: the caller closes it.
  HANDLE release() { return std::exchange(handle_, INVALID_HANDLE_VALUE); }

 private:
  HANDLE handle_ = INVALID_HANDLE_VALUE;
};

// Nothing: it is no UTF-8.
std::optional<std::wstring> to_utf16(std::string_view text);
// What is no UTF-16 becomes U+FFFD.
std::string to_utf8(std::wstring_view text);
// A path as the system takes it, also where it is longer than old programs could name. Empty if it is no UTF-8, which
// no file is called.
std::wstring native_path(const std::string& path);
// Calls work(record) for each record of that kind that tells of processors.
void for_each_record(LOGICAL_PROCESSOR_RELATIONSHIP kind,
                     const std::function<void(const SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX&)>& work);

// What the C library of other systems says of the same failure, or else what Windows says.
std::string message_of(DWORD error);
inline std::string last_message() { return message_of(::GetLastError()); }

}  // namespace mote::windows
