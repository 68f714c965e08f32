#pragma once

#include <jni.h>

#include "runner/capi/mote.h"

namespace mote::java {

// listener: a LogListener; nullptr: standard error again
void set_log_listener(JNIEnv* env, mote_log_level level, jobject listener);

}  // namespace mote::java
