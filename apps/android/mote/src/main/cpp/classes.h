// Classes, methods and fields of Java that native code uses, looked up when the library is loaded.
#pragma once

#include <jni.h>

namespace mote::java {

struct Constructor {
  jclass type = nullptr;
  jmethodID id = nullptr;

  template <typename... Arguments>
  jobject operator()(JNIEnv* env, Arguments... arguments) const {
    return env->NewObject(type, id, arguments...);
  }
};

struct Classes {
  jclass string, float_array;
  jclass handle;
  jfieldID handle_number;
  jmethodID closed_exception;
  jfieldID session_vocab_size;
  jclass mote_exception;
  jmethodID mote_exception_of;
  jfieldID options_json, options_grammar, options_prefix_cache;
  jfieldID embed_dimensions, embed_prompt_name, embed_prompt, embed_keep_length, embed_refuse_long, embed_plain_text;
  jfieldID download_endpoint, download_token, download_sha256, download_allow_metered, download_keep_free_bytes;
  jmethodID on_progress, is_cancelled, on_line;
  jclass log_level;
  jmethodID log_level_values;
  Constructor model_info, session_info, memory, prefix_cache_info, piece, statistics, chat_step, chat_statistics,
      batch_piece, stored_model, download_progress;
};

// Of the process, from JNI_OnLoad on.
const Classes& classes();
// Looks everything up and registers the native methods. False: a Java exception waits.
bool load_classes(JNIEnv* env);

}  // namespace mote::java
