// Status and Result<T>: how every C++ part of Mote reports failure. No exceptions cross a library boundary.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace mote {

enum class Code : int32_t {
  kOk = 0,
  kFileNotFound = 10,
  kFileUnreadable = 11,
  kFileChanged = 12,
  kFileUnwritable = 13,
  kInvalidProgram = 20,
  kUnsupportedVersion = 21,
  kUnsupportedOp = 22,
  kInvalidSession = 23,
  kUnsupportedBackend = 24,
  kInvalidTokenizer = 30,
  kInvalidTemplate = 31,
  kInvalidArgument = 40,
  kContextFull = 41,
  kInvalidState = 42,
  kOutOfMemory = 50,
  kCancelled = 60,
  kInternal = 70,
};

// Success, or a code and one sentence that says what, where and what would be accepted. A pointer, null for success:
// what every call returns and passes on costs little to move and to destroy.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) noexcept;
  Status(const Status& other) noexcept;
  Status(Status&&) noexcept = default;
  Status& operator=(const Status& other) { return *this = Status(other); }
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  bool ok() const { return failure_ == nullptr; }
  Code code() const;
  const std::string& message() const;

 private:
  struct Failure;
  struct Delete {
    void operator()(Failure* failure) const noexcept;
  };
  std::unique_ptr<Failure, Delete> failure_;
};

// A value or the Status that explains its absence.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return value_.has_value(); }
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

// MinGW's gcc takes `printf` for that of Microsoft's old C library, which is not the one that is called.
#if defined(__MINGW32__) && !defined(__clang__)
#define MOTE_PRINTF(pattern, arguments) gnu::format(gnu_printf, pattern, arguments)
#else
#define MOTE_PRINTF(pattern, arguments) gnu::format(printf, pattern, arguments)
#endif

// printf-like text for messages.
[[MOTE_PRINTF(1, 2)]] std::string format(const char* pattern, ...);
[[MOTE_PRINTF(1, 0)]] std::string format_list(const char* pattern, va_list arguments);
// A failure with such a text: one call where many refuse something.
[[gnu::cold, MOTE_PRINTF(2, 3)]] Status failure(Code code, const char* pattern, ...) noexcept;

}  // namespace mote

// Returns the failed Status of `expression` from the calling function.
#define MOTE_RETURN_IF_ERROR(expression)                                                     \
  do {                                                                                       \
    if (::mote::Status mote_status_ = (expression); !mote_status_.ok()) return mote_status_; \
  } while (false)

#define MOTE_CONCAT_INNER(a, b) a##b
#define MOTE_CONCAT(a, b) MOTE_CONCAT_INNER(a, b)

// MOTE_ASSIGN(auto x, f()): x = the value of f(), or returns f()'s Status.
#define MOTE_ASSIGN(target, expression) MOTE_ASSIGN_IMPL(MOTE_CONCAT(mote_result_, __LINE__), target, expression)
#define MOTE_ASSIGN_IMPL(result, target, expression)   \
  auto result = (expression);                          \
  if (!result.ok()) return std::move(result).status(); \
  target = *std::move(result)

// Input check: always on, returns an error.
#define MOTE_REQUIRE(condition, code, ...)                         \
  do {                                                             \
    if (!(condition)) return ::mote::failure((code), __VA_ARGS__); \
  } while (false)
