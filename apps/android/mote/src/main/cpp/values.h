// Structs of the C API as objects of Java.
#pragma once

#include <jni.h>

#include <initializer_list>

#include "apps/android/mote/src/main/cpp/classes.h"
#include "runner/capi/mote.h"

namespace mote::java {

// An object that is made of its numbers.
jobject object_of(JNIEnv* env, const Constructor& make, std::initializer_list<int64_t> numbers);
jobject object_of(JNIEnv* env, const mote_piece& piece);
jobject object_of(JNIEnv* env, const mote_chat_event& event);
jobject object_of(JNIEnv* env, const mote_statistics& statistics);
jobject object_of(JNIEnv* env, const mote_chat_statistics& of_chat, const mote_statistics& of_generation);

}  // namespace mote::java
