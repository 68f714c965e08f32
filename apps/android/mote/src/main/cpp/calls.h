// What every native method shares: errors, handles, texts and arrays.
#pragma once

#include <jni.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runner/capi/callers.h"
#include "runner/capi/mote.h"

namespace mote::java {

// Thrown where a Java exception waits for the native method to return.
struct Pending {};

// In a handler: the exception that has been caught as one of Java, unless one waits already.
void throw_caught(JNIEnv* env);

// What Java sees of a native method: no C++ exception leaves, and where a Java exception waits the result is nothing.
template <typename Body>
auto guarded(JNIEnv* env, Body body) -> decltype(body()) {
  try {
    return body();
  } catch (...) { throw_caught(env); }
  if constexpr (!std::is_void_v<decltype(body())>) return {};
}

// A result of JNI, unless an exception waits.
template <typename T>
T checked(JNIEnv* env, T result) {
  if (env->ExceptionCheck()) throw Pending{};
  return result;
}

// A local reference that ends here, for what comes many times in a call.
template <typename T>
class Local {
 public:
  Local(JNIEnv* env, T object) : env_(env), object_(checked(env, object)) {}
  Local(const Local&) = delete;
  Local& operator=(const Local&) = delete;
  ~Local() { env_->DeleteLocalRef(object_); }
  T get() const { return object_; }

 private:
  JNIEnv* env_;
  T object_;
};

[[noreturn]] void throw_null(JNIEnv* env, const char* what);
// The handles that a call of the C API is given; nullptr: fewer.
struct Handles {
  Handles(jobject self, jobject other = nullptr) : objects{self, other} {}
  jobject objects[2];
};

// Errors of a call: IllegalStateException if one of its handles is closed by now.
[[noreturn]] void throw_error(JNIEnv* env, const Handles& handles, const mote_error& error);
// The exception of a code, not thrown.
jthrowable exception_of(JNIEnv* env, const mote_error& error);

// check(env, handles, [&](mote_error* error) { return mote_...(..., error); })
template <typename Call>
void check(JNIEnv* env, const Handles& handles, Call call) {
  auto error = sized<mote_error>();
  const mote_error_code code = call(&error);
  if (env->ExceptionCheck()) throw Pending{};  // of a callback
  if (code != MOTE_OK) throw_error(env, handles, error);
}

int64_t number_of(JNIEnv* env, jobject handle, const char* what);
// Of a Java object of the kind. Errors: NullPointerException, IllegalStateException if it is closed.
template <typename T>
T* handle_of(JNIEnv* env, jobject handle, const char* what = "this") {
  return reinterpret_cast<T*>(static_cast<intptr_t>(number_of(env, handle, what)));
}
template <typename T>
T* handle_or_null(JNIEnv* env, jobject handle) {
  return handle == nullptr ? nullptr : handle_of<T>(env, handle);
}
inline jlong number_of(const void* handle) { return static_cast<jlong>(reinterpret_cast<intptr_t>(handle)); }

std::string text_of(JNIEnv* env, jstring text, const char* what);
// Without NULs. Errors: ArgumentException
std::string path_of(JNIEnv* env, jstring path);
jstring string_of(JNIEnv* env, std::string_view text);
// Of a call that gives a text, as for given_text.
template <typename Call>
jstring given_string(JNIEnv* env, jobject self, const Call& call) {
  return string_of(env, given_text([&](const auto& inner) { check(env, self, inner); }, call));
}

std::vector<int32_t> ints_of(JNIEnv* env, jintArray array, const char* what);
std::vector<float> floats_of(JNIEnv* env, jfloatArray array, const char* what);
jintArray array_of(JNIEnv* env, std::span<const int32_t> values);
jfloatArray array_of(JNIEnv* env, std::span<const float> values);
jlongArray array_of(JNIEnv* env, std::span<const int64_t> values);
jdoubleArray array_of(JNIEnv* env, std::span<const double> values);

// A method of an interface of Java that says yes or no, called by the thread that gave it.
class Callback {
 public:
  // object: may be nullptr: nobody is asked
  Callback(JNIEnv* env, jobject object, jmethodID method) : env_(env), object_(object), method_(method) {}
  bool is_set() const { return object_ != nullptr; }
  // nullopt: it throws, or threw before.
  template <typename... Arguments>
  std::optional<bool> ask(Arguments... arguments) const {
    if (env_->ExceptionCheck()) return std::nullopt;
    const jboolean answer = env_->CallBooleanMethod(object_, method_, arguments...);
    if (env_->ExceptionCheck()) return std::nullopt;
    return answer == JNI_TRUE;
  }

 private:
  JNIEnv* env_;
  jobject object_;
  jmethodID method_;
};

// mote_is_cancelled of a CancelCheck, for its Callback.
inline int32_t ask_whether_cancelled(void* callback) {
  return static_cast<Callback*>(callback)->ask().value_or(true) ? 1 : 0;
}

using Methods = std::span<const JNINativeMethod>;

Methods mote_methods();
Methods handle_methods();
Methods model_methods();
Methods session_methods();
Methods generation_methods();
Methods chat_methods();
Methods chat_turn_methods();
Methods adapter_methods();
Methods prefix_cache_methods();
Methods beams_methods();
Methods batch_methods();
Methods embedder_methods();
Methods store_methods();
Methods download_methods();

// {name, signature, function} of a native method.
template <typename Function>
JNINativeMethod method(const char* name, const char* signature, Function* function) {
  return {const_cast<char*>(name), const_cast<char*>(signature), reinterpret_cast<void*>(function)};
}

}  // namespace mote::java
