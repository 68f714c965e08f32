#include "apps/android/mote/src/main/cpp/log.h"

#include <memory>

#include "apps/android/mote/src/main/cpp/calls.h"
#include "apps/android/mote/src/main/cpp/classes.h"

namespace mote::java {
namespace {

// This thread's way into Java. A thread of Mote's own is attached until it ends.
class Attached {
 public:
  explicit Attached(JavaVM* vm) {
    if (vm->GetEnv(reinterpret_cast<void**>(&env_), JNI_VERSION_1_6) == JNI_OK) return;
    JavaVMAttachArgs arguments = {JNI_VERSION_1_6, const_cast<char*>("mote"), nullptr};
#if defined(__ANDROID__)
    JNIEnv** env = &env_;
#else
    void** env = reinterpret_cast<void**>(&env_);
#endif
    if (vm->AttachCurrentThreadAsDaemon(env, &arguments) == JNI_OK) detached_at_end(vm);
  }
  // nullptr: Java ends.
  JNIEnv* env() const { return env_; }

 private:
  static void detached_at_end(JavaVM* vm) {
    struct Detach {
      JavaVM* vm;
      ~Detach() { vm->DetachCurrentThread(); }
    };
    thread_local const Detach detach{vm};
  }

  JNIEnv* env_ = nullptr;
};

struct Listener {
  JavaVM* vm;
  jobject object;  // a global reference
};

void tell(JNIEnv* env, jobject listener, mote_log_level level, std::string_view line) {
  const Local<jobject> levels(env, env->CallStaticObjectMethod(classes().log_level, classes().log_level_values));
  const Local<jobject> of_line(env, env->GetObjectArrayElement(static_cast<jobjectArray>(levels.get()), level));
  const Local<jstring> text(env, string_of(env, line));
  env->CallVoidMethod(listener, classes().on_line, of_line.get(), text.get());
}

void write_line(void* user_data, mote_log_level level, const char* text, size_t text_bytes) {
  const auto& listener = *static_cast<Listener*>(user_data);
  JNIEnv* env = Attached(listener.vm).env();
  // A thread that brings an exception to Java may not call Java.
  if (env == nullptr || env->ExceptionCheck()) return;
  guarded(env, [&] { tell(env, listener.object, level, {text, text_bytes}); });
  env->ExceptionClear();
}

void release(void* user_data) {
  const std::unique_ptr<Listener> listener(static_cast<Listener*>(user_data));
  if (JNIEnv* env = Attached(listener->vm).env()) env->DeleteGlobalRef(listener->object);
}

}  // namespace

void set_log_listener(JNIEnv* env, mote_log_level level, jobject listener) {
  if (listener == nullptr) {
    return check(env, nullptr,
                 [&](mote_error* error) { return mote_set_log_sink(level, nullptr, nullptr, nullptr, error); });
  }
  JavaVM* vm = nullptr;
  env->GetJavaVM(&vm);
  auto owned = std::make_unique<Listener>(Listener{vm, env->NewGlobalRef(listener)});
  check(env, nullptr,
        [&](mote_error* error) { return mote_set_log_sink(level, write_line, owned.release(), release, error); });
}

}  // namespace mote::java
