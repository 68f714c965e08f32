// The library as Java loads it, and what belongs to no model.
#include <array>
#include <cstdlib>

#include "apps/android/mote/src/main/cpp/calls.h"
#include "apps/android/mote/src/main/cpp/classes.h"
#include "apps/android/mote/src/main/cpp/log.h"
#include "apps/android/mote/src/main/cpp/values.h"

#if defined(__GLIBCXX__)
// The C++ library's own, which writes what was thrown, would bring 50 kB that read names of types.
namespace __gnu_cxx {
void __verbose_terminate_handler();
void __verbose_terminate_handler() { std::abort(); }
}  // namespace __gnu_cxx
#endif

namespace mote::java {
namespace {

jstring version(JNIEnv* env, jclass) {
  return guarded(env, [&] { return string_of(env, mote_version()); });
}

template <auto describe>
jstring description(JNIEnv* env, jclass) {
  return guarded(env, [&] {
    return given_string(env, nullptr, [](char** json, mote_error* error) { return describe(json, error); });
  });
}

jstring describe_file(JNIEnv* env, jclass, jstring path) {
  return guarded(env, [&] {
    const std::string file = path_of(env, path);
    return given_string(env, nullptr,
                        [&](char** json, mote_error* error) { return mote_describe_file(file.c_str(), json, error); });
  });
}

jobject memory(JNIEnv* env, jclass) {
  return guarded(env, [&] {
    auto memory = sized<mote_memory>();
    check(env, nullptr, [&](mote_error* error) { return mote_get_memory(&memory, error); });
    return object_of(env, classes().memory,
                     {static_cast<int64_t>(memory.peak_rss_bytes), static_cast<int64_t>(memory.peak_private_bytes),
                      static_cast<int64_t>(memory.peak_file_backed_bytes)});
  });
}

void set_log(JNIEnv* env, jclass, jint level, jobject listener) {
  guarded(env, [&] { set_log_listener(env, static_cast<mote_log_level>(level), listener); });
}

jstring finish_reason_name(JNIEnv* env, jclass, jint number) {
  return guarded(env, [&]() -> jstring {
    const char* name = mote_finish_reason_name(static_cast<mote_finish_reason>(number));
    return name == nullptr ? nullptr : string_of(env, name);
  });
}

}  // namespace

Methods mote_methods() {
  static const std::array methods = {
      method("version", "()Ljava/lang/String;", version),
      method("describeBuild", "()Ljava/lang/String;", description<mote_describe_build>),
      method("describeKernels", "()Ljava/lang/String;", description<mote_describe_kernels>),
      method("describeOptions", "()Ljava/lang/String;", description<mote_describe_options>),
      method("describeFile", "(Ljava/lang/String;)Ljava/lang/String;", describe_file),
      method("memory", "()Lai/mote/Memory;", memory),
      method("setLog", "(ILai/mote/LogListener;)V", set_log),
      method("finishReasonName", "(I)Ljava/lang/String;", finish_reason_name),
  };
  return methods;
}

}  // namespace mote::java

extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) {
  JNIEnv* env = nullptr;
  if (vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_6) != JNI_OK) return JNI_ERR;
  return mote::java::load_classes(env) ? JNI_VERSION_1_6 : JNI_ERR;
}
