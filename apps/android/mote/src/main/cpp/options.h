#pragma once

#include <jni.h>

#include <memory>

#include "apps/android/mote/src/main/cpp/calls.h"

namespace mote::java {

// A set of options of Java for one call.
class Options {
 public:
  // options: may be nullptr, the defaults   Errors: ArgumentException
  Options(JNIEnv* env, int32_t scopes, jobject options);
  // progress: told by this thread; not nullptr
  void set_progress(JNIEnv* env, Callback* progress);
  mote_options* get() const { return handle_.get(); }

 private:
  std::unique_ptr<mote_options, Closer<mote_options_close>> handle_;
};

}  // namespace mote::java
