#include "apps/android/mote/src/main/cpp/calls.h"

#include <new>

#include "apps/android/mote/src/main/cpp/classes.h"
#include "apps/android/mote/src/main/cpp/text.h"

namespace mote::java {
namespace {

[[noreturn]] void throw_object(JNIEnv* env, jobject exception) {
  if (exception != nullptr) env->Throw(static_cast<jthrowable>(exception));
  throw Pending{};
}

[[noreturn]] void throw_closed(JNIEnv* env, jobject handle) {
  throw_object(env, checked(env, env->CallObjectMethod(handle, classes().closed_exception)));
}

// fill(array) by JNI's region calls.
template <typename Array, typename Fill>
Array filled(JNIEnv* env, Array array, const Fill& fill) {
  if (array == nullptr) throw Pending{};
  fill(array);
  return checked(env, array);
}

}  // namespace

void throw_caught(JNIEnv* env) {
  const auto throw_error = [&](const char* name) {
    if (const jclass type = env->ExceptionCheck() ? nullptr : env->FindClass(name))
      env->ThrowNew(type, "native memory");
  };
  try {
    throw;
  } catch (const Pending&) {
  } catch (const std::bad_alloc&) { throw_error("java/lang/OutOfMemoryError"); } catch (...) {
    throw_error("java/lang/InternalError");
  }
}

void throw_null(JNIEnv* env, const char* what) {
  if (const jclass type = env->FindClass("java/lang/NullPointerException")) env->ThrowNew(type, what);
  throw Pending{};
}

jthrowable exception_of(JNIEnv* env, const mote_error& error) {
  const char* name = mote_error_name(error.code);
  const Local<jstring> code_name(env, string_of(env, name == nullptr ? "" : name));
  const Local<jstring> message(env, string_of(env, error.message));
  const jobject exception = env->CallStaticObjectMethod(classes().mote_exception, classes().mote_exception_of,
                                                        jint{error.code}, code_name.get(), message.get());
  return static_cast<jthrowable>(checked(env, exception));
}

void throw_error(JNIEnv* env, const Handles& handles, const mote_error& error) {
  for (const jobject handle : handles.objects) {
    if (error.code != MOTE_ERROR_INVALID_ARGUMENT || handle == nullptr) continue;
    if (env->GetLongField(handle, classes().handle_number) == 0) throw_closed(env, handle);
  }
  throw_object(env, exception_of(env, error));
}

int64_t number_of(JNIEnv* env, jobject handle, const char* what) {
  if (handle == nullptr) throw_null(env, what);
  const jlong number = env->GetLongField(handle, classes().handle_number);
  if (number == 0) throw_closed(env, handle);
  return number;
}

std::string text_of(JNIEnv* env, jstring text, const char* what) {
  if (text == nullptr) throw_null(env, what);
  const jsize length = env->GetStringLength(text);
  std::u16string units(static_cast<size_t>(length), u'\0');
  env->GetStringRegion(text, 0, length, reinterpret_cast<jchar*>(units.data()));
  return utf8_of(units);
}

std::string path_of(JNIEnv* env, jstring path) {
  std::string result = text_of(env, path, "path");
  if (result.find('\0') == std::string::npos) return result;
  auto error = sized<mote_error>();
  error.code = MOTE_ERROR_INVALID_ARGUMENT;
  std::string_view("the path has a NUL, which no path may have").copy(error.message, sizeof error.message - 1);
  throw_error(env, nullptr, error);
}

jstring string_of(JNIEnv* env, std::string_view text) {
  const std::u16string units = utf16_of(text);
  return checked(env, env->NewString(reinterpret_cast<const jchar*>(units.data()), static_cast<jsize>(units.size())));
}

std::vector<int32_t> ints_of(JNIEnv* env, jintArray array, const char* what) {
  if (array == nullptr) throw_null(env, what);
  std::vector<int32_t> values(static_cast<size_t>(env->GetArrayLength(array)));
  env->GetIntArrayRegion(array, 0, static_cast<jsize>(values.size()), values.data());
  return values;
}

std::vector<float> floats_of(JNIEnv* env, jfloatArray array, const char* what) {
  if (array == nullptr) throw_null(env, what);
  std::vector<float> values(static_cast<size_t>(env->GetArrayLength(array)));
  env->GetFloatArrayRegion(array, 0, static_cast<jsize>(values.size()), values.data());
  return values;
}

jintArray array_of(JNIEnv* env, std::span<const int32_t> values) {
  const auto size = static_cast<jsize>(values.size());
  return filled(env, env->NewIntArray(size),
                [&](jintArray array) { env->SetIntArrayRegion(array, 0, size, values.data()); });
}

jfloatArray array_of(JNIEnv* env, std::span<const float> values) {
  const auto size = static_cast<jsize>(values.size());
  return filled(env, env->NewFloatArray(size),
                [&](jfloatArray array) { env->SetFloatArrayRegion(array, 0, size, values.data()); });
}

jlongArray array_of(JNIEnv* env, std::span<const int64_t> values) {
  const auto size = static_cast<jsize>(values.size());
  return filled(env, env->NewLongArray(size), [&](jlongArray array) {
    env->SetLongArrayRegion(array, 0, size, reinterpret_cast<const jlong*>(values.data()));
  });
}

jdoubleArray array_of(JNIEnv* env, std::span<const double> values) {
  const auto size = static_cast<jsize>(values.size());
  return filled(env, env->NewDoubleArray(size),
                [&](jdoubleArray array) { env->SetDoubleArrayRegion(array, 0, size, values.data()); });
}

}  // namespace mote::java
