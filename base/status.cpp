#include "base/status.h"

#include <cstdio>

namespace mote {

struct Status::Failure {
  Code code;
  std::string message;
};

void Status::Delete::operator()(Failure* failure) const noexcept { delete failure; }

Status::Status(Code code, std::string message) {
  if (code != Code::kOk) failure_.reset(new Failure{code, std::move(message)});
}

Status::Status(const Status& other) {
  if (!other.ok()) failure_.reset(new Failure(*other.failure_));
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

}  // namespace mote
