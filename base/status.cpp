#include "base/status.h"

#include <cstddef>
#include <cstdio>
#include <new>

namespace mote {

struct Status::Failure {
  Code code;
  std::string message;

  // What a failure becomes where there is no memory to say which, so that neither making nor copying a Status throws.
  // Never destroyed: a Status may be the last to go.
  static Failure* no_memory() {
    alignas(Failure) static std::byte place[sizeof(Failure)];
    static Failure* const made = new (place) Failure{Code::kOutOfMemory, "out of memory"};
    return made;
  }
};

void Status::Delete::operator()(Failure* failure) const noexcept {
  if (failure != Failure::no_memory()) delete failure;
}

Status::Status(Code code, std::string message) noexcept {
  if (code == Code::kOk) return;
  failure_.reset(new (std::nothrow) Failure{code, std::move(message)});
  if (failure_ == nullptr) failure_.reset(Failure::no_memory());
}

Status::Status(const Status& other) noexcept {
  if (other.ok()) return;
  try {
    failure_.reset(new Failure(*other.failure_));
  } catch (const std::bad_alloc&) { failure_.reset(Failure::no_memory()); }
}

Code Status::code() const { return ok() ? Code::kOk : failure_->code; }

const std::string& Status::message() const {
  static const std::string none;
  return ok() ? none : failure_->message;
}

std::string format_list(const char* pattern, va_list arguments) {
  va_list copy;
  va_copy(copy, arguments);
  const int length = std::vsnprintf(nullptr, 0, pattern, copy);
  va_end(copy);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, arguments);
  return text;
}

std::string format(const char* pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  std::string text = format_list(pattern, arguments);
  va_end(arguments);
  return text;
}

Status failure(Code code, const char* pattern, ...) noexcept {
  va_list arguments;
  va_start(arguments, pattern);
  Status status;
  try {
    status = Status(code, format_list(pattern, arguments));
  } catch (const std::bad_alloc&) { status = Status(Code::kOutOfMemory, "out of memory"); }
  va_end(arguments);
  return status;
}

}  // namespace mote
