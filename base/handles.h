// Handles of C APIs. They are looked up and never dereferenced, so that a call with a closed handle, with one of
// another kind or with any other pointer gives an error. docs/decisions/0008-capi-handles.md tells how.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "base/status.h"

namespace mote {

// The kind of object behind a handle. Kinds are told apart by their addresses.
struct HandleKind {
  const char* name;
  void (*destroy)(void* object);
};

// Keeps the object of a handle alive, even if the handle is closed meanwhile.
class Pin {
 public:
  Pin() = default;
  Pin(Pin&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
  Pin& operator=(Pin&& other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
  }
  // The last pin of a closed handle destroys the object.
  ~Pin();

  // Empty if `handle` is not an open handle of that kind. May be called in signal handlers: it neither locks nor
  // allocates.
  static Pin find(const HandleKind& kind, const void* handle) noexcept;

  explicit operator bool() const { return slot_ != nullptr; }
  void* object() const;

 private:
  struct HandleSlot* slot_ = nullptr;
};

// A new handle of `object`, which owns the object from then on. Errors: kOutOfMemory; throws std::bad_alloc.
Result<void*> open_handle(const HandleKind& kind, void* object);
// Closes the handle; the object is destroyed once no call uses it. Does nothing if `handle` is not an open handle of
// that kind.
void close_handle(const HandleKind& kind, const void* handle) noexcept;
// A status of kInvalidArgument that says why find() found nothing.
Status refuse_handle(const HandleKind& kind, const void* handle);
// The number of objects that are alive because their handles are open or a call uses them.
size_t num_handle_objects();

// The same with types. Object::kName is the name of its kind.
template <typename Object>
inline constexpr HandleKind kHandleKind{Object::kName, [](void* object) { delete static_cast<Object*>(object); }};

// A pinned object.
template <typename Object>
class Held {
 public:
  static Held find(const void* handle) noexcept { return Held(Pin::find(kHandleKind<Object>, handle)); }
  // Errors: kInvalidArgument saying what is wrong with the handle.
  static Result<Held> of(const void* handle) {
    Held held = find(handle);
    if (!held) return refuse_handle(kHandleKind<Object>, handle);
    return held;
  }

  explicit operator bool() const { return static_cast<bool>(pin_); }
  Object* operator->() const { return static_cast<Object*>(pin_.object()); }
  Object& operator*() const { return *operator->(); }

 private:
  explicit Held(Pin pin) : pin_(std::move(pin)) {}
  Pin pin_;
};

template <typename Object>
Result<void*> open_handle(std::unique_ptr<Object> object) {
  MOTE_ASSIGN(void* handle, open_handle(kHandleKind<Object>, object.get()));
  (void)object.release();
  return handle;
}

}  // namespace mote
