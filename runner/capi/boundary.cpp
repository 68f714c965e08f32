#include "runner/capi/boundary.h"

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>

#include "base/utf8.h"

namespace mote::capi {

mote_error_code report(Code status_code, std::string_view text, mote_error* error) noexcept {
  const auto code = static_cast<mote_error_code>(status_code);
  if (error == nullptr || error->struct_size <= offsetof(mote_error, message)) return code;
  error->code = code;
  const size_t capacity = std::min<size_t>(error->struct_size - offsetof(mote_error, message), sizeof error->message);
  if (text.size() >= capacity) {
    text = text.substr(0, capacity - 1);
    text.remove_suffix(incomplete_utf8_suffix(text));
  }
  if (!text.empty()) std::memcpy(error->message, text.data(), text.size());
  error->message[text.size()] = '\0';
  return code;
}

mote_error_code guarded_call(mote_error* error, Status (*call)(void* body), void* body) {
  try {
    const Status status = call(body);
    return report(status.code(), status.message(), error);
  } catch (const std::bad_alloc&) {
    return report(Code::kOutOfMemory, "out of memory", error);
  } catch (const std::exception& exception) { return report(Code::kInternal, exception.what(), error); } catch (...) {
    return report(Code::kInternal, "unknown exception", error);
  }
}

Status give_string(std::string_view text, char** out, size_t* out_bytes) {
  *out = static_cast<char*>(std::malloc(text.size() + 1));
  MOTE_REQUIRE(*out != nullptr, Code::kOutOfMemory, "out of memory for %zu bytes of text", text.size());
  if (!text.empty()) std::memcpy(*out, text.data(), text.size());
  (*out)[text.size()] = '\0';
  if (out_bytes != nullptr) *out_bytes = text.size();
  return {};
}

}  // namespace mote::capi

void mote_string_free(char* text) { std::free(text); }
