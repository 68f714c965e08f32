#include <array>

#include "apps/android/mote/src/main/cpp/calls.h"
#include "apps/android/mote/src/main/cpp/classes.h"
#include "apps/android/mote/src/main/cpp/options.h"
#include "apps/android/mote/src/main/cpp/values.h"

namespace mote::java {
namespace {

using OwnedModel = std::unique_ptr<mote_model, Closer<mote_model_close>>;

// open(options, &model, error)
template <typename Open>
jlong opened(JNIEnv* env, jobject options, jobject progress, const Open& open) {
  Options of_model(env, MOTE_SCOPE_MODEL, options);
  Callback callback(env, progress, classes().on_progress);
  if (callback.is_set()) of_model.set_progress(env, &callback);
  OwnedModel owned;
  check(env, nullptr, [&](mote_error* error) {
    mote_model* model = nullptr;
    const mote_error_code code = open(of_model.get(), &model, error);
    owned.reset(model);
    return code;
  });
  return number_of(owned.release());
}

jlong open_path(JNIEnv* env, jclass, jstring path, jobject options, jobject progress) {
  return guarded(env, [&] {
    const std::string file = path_of(env, path);
    return opened(env, options, progress, [&](auto... rest) { return mote_model_open(file.c_str(), rest...); });
  });
}

jlong open_descriptor(JNIEnv* env, jclass, jint descriptor, jlong offset, jlong length, jobject options,
                      jobject progress) {
  return guarded(env, [&] {
    return opened(env, options, progress,
                  [&](auto... rest) { return mote_model_open_fd(descriptor, offset, length, rest...); });
  });
}

// A buffer that a model reads, for as long as it does.
class Buffer {
 public:
  Buffer(JNIEnv* env, jobject bytes) : bytes_(env->NewGlobalRef(bytes)) { env->GetJavaVM(&vm_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  // By a thread of Java: what closes a model or the last session comes from there.
  ~Buffer() {
    JNIEnv* env = nullptr;
    if (vm_->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_6) == JNI_OK) env->DeleteGlobalRef(bytes_);
  }
  static void release(void* buffer) { delete static_cast<Buffer*>(buffer); }

 private:
  JavaVM* vm_ = nullptr;
  jobject bytes_;
};

jlong open_buffer(JNIEnv* env, jclass, jobject bytes, jobject options, jobject progress) {
  return guarded(env, [&] {
    if (bytes == nullptr) throw_null(env, "bytes");
    const void* data = env->GetDirectBufferAddress(bytes);
    if (data == nullptr) {
      const jclass type = checked(env, env->FindClass("java/lang/IllegalArgumentException"));
      env->ThrowNew(type, "the buffer must be a direct one");
      throw Pending{};
    }
    const auto size = static_cast<size_t>(env->GetDirectBufferCapacity(bytes));
    auto buffer = std::make_unique<Buffer>(env, bytes);
    return opened(env, options, progress, [&](auto... rest) {
      return mote_model_open_memory(data, size, Buffer::release, buffer.release(), rest...);
    });
  });
}

jobject info_of_model(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    auto info = sized<mote_model_info>();
    auto* model = handle_of<mote_model>(env, self);
    check(env, self, [&](mote_error* error) { return mote_model_get_info(model, &info, error); });
    return object_of(
        env, classes().model_info,
        {info.vocab_size, info.max_position_embeddings, info.bos_token_id, info.has_tokenizer, info.has_chat_template,
         static_cast<int64_t>(info.file_bytes), static_cast<int64_t>(info.weight_bytes), info.generates, info.embeds});
  });
}

template <auto describe>
jstring described(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    auto* model = handle_of<mote_model>(env, self);
    return given_string(env, self, [&](char** json, mote_error* error) { return describe(model, json, error); });
  });
}

jstring chat_template(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    auto* model = handle_of<mote_model>(env, self);
    return given_string(env, self, [&](char** text, size_t* text_bytes, mote_error* error) {
      return mote_model_chat_template(model, text, text_bytes, error);
    });
  });
}

template <auto call>
void called(JNIEnv* env, jobject self) {
  guarded(env, [&] {
    auto* model = handle_of<mote_model>(env, self);
    check(env, self, [&](mote_error* error) { return call(model, error); });
  });
}

jintArray tokenize(JNIEnv* env, jobject self, jstring text, jboolean add_special, jboolean parse_special) {
  return guarded(env, [&] {
    auto* model = handle_of<mote_model>(env, self);
    const std::string utf8 = text_of(env, text, "text");
    return array_of(env, all_ids(most_ids(utf8.size()), [&](int32_t* ids, size_t capacity, size_t* count) {
                      check(env, self, [&](mote_error* error) {
                        return mote_tokenize(model, utf8.data(), utf8.size(), add_special, parse_special, ids, capacity,
                                             count, error);
                      });
                    }));
  });
}

jstring detokenize(JNIEnv* env, jobject self, jintArray ids, jboolean skip_special) {
  return guarded(env, [&] {
    auto* model = handle_of<mote_model>(env, self);
    const std::vector<int32_t> given = ints_of(env, ids, "ids");
    return given_string(env, self, [&](char** text, size_t* text_bytes, mote_error* error) {
      return mote_detokenize(model, given.data(), given.size(), skip_special, text, text_bytes, error);
    });
  });
}

// What a model opens: open(model, &handle, error)
template <typename Handle, typename Open>
jlong opened_of(JNIEnv* env, jobject self, const Open& open) {
  Handle* handle = nullptr;
  auto* model = handle_of<mote_model>(env, self);
  check(env, self, [&](mote_error* error) { return open(model, &handle, error); });
  return number_of(handle);
}

jlong open_chat(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    return opened_of<mote_chat>(env, self, [](auto... arguments) { return mote_chat_open(arguments...); });
  });
}

jlong open_session(JNIEnv* env, jobject self, jobject options) {
  return guarded(env, [&] {
    const Options of_session(env, MOTE_SCOPE_SESSION, options);
    return opened_of<mote_session>(env, self, [&](mote_model* model, auto... rest) {
      return mote_session_open(model, of_session.get(), rest...);
    });
  });
}

jlong open_embedder(JNIEnv* env, jobject self, jobject options) {
  return guarded(env, [&] {
    const Options of_session(env, MOTE_SCOPE_SESSION, options);
    return opened_of<mote_embedder>(env, self, [&](mote_model* model, auto... rest) {
      return mote_embedder_open(model, of_session.get(), rest...);
    });
  });
}

jlong open_batch(JNIEnv* env, jobject self, jint max_sequences, jobject options) {
  return guarded(env, [&] {
    const Options of_session(env, MOTE_SCOPE_SESSION, options);
    return opened_of<mote_batch>(env, self, [&](mote_model* model, auto... rest) {
      return mote_batch_open(model, max_sequences, of_session.get(), rest...);
    });
  });
}

jlong open_adapter(JNIEnv* env, jobject self, jstring path) {
  return guarded(env, [&] {
    const std::string file = path_of(env, path);
    return opened_of<mote_adapter>(env, self, [&](mote_model* model, auto... rest) {
      return mote_adapter_open(model, file.c_str(), nullptr, rest...);
    });
  });
}

jlong open_grammar(JNIEnv* env, jobject self, jint syntax, jstring source, jobject cancel_check) {
  return guarded(env, [&] {
    mote_vocabulary* vocabulary = nullptr;
    auto* model = handle_of<mote_model>(env, self);
    check(env, self, [&](mote_error* error) { return mote_model_vocabulary(model, &vocabulary, error); });
    const std::unique_ptr<mote_vocabulary, Closer<mote_vocabulary_close>> owned(vocabulary);
    const std::string text = text_of(env, source, "source");
    Callback callback(env, cancel_check, classes().is_cancelled);
    auto options = sized<mote_grammar_options>();
    options.syntax = static_cast<mote_syntax>(syntax);
    options.source = text.data();
    options.source_bytes = text.size();
    if (callback.is_set()) options.is_cancelled = ask_whether_cancelled;
    options.user_data = &callback;
    mote_grammar* grammar = nullptr;
    check(env, self, [&](mote_error* error) { return mote_grammar_open(vocabulary, &options, &grammar, error); });
    return number_of(grammar);
  });
}

}  // namespace

Methods model_methods() {
  static const std::array methods = {
      method("openPath", "(Ljava/lang/String;Lai/mote/Options;Lai/mote/ProgressListener;)J", open_path),
      method("openDescriptor", "(IJJLai/mote/Options;Lai/mote/ProgressListener;)J", open_descriptor),
      method("openBuffer", "(Ljava/nio/ByteBuffer;Lai/mote/Options;Lai/mote/ProgressListener;)J", open_buffer),
      method("info", "()Lai/mote/ModelInfo;", info_of_model),
      method("describe", "()Ljava/lang/String;", described<mote_model_describe>),
      method("chatTemplate", "()Ljava/lang/String;", chat_template),
      method("generationConfig", "()Ljava/lang/String;", described<mote_model_generation_config>),
      method("embeddingConfig", "()Ljava/lang/String;", described<mote_model_embedding_config>),
      method("checkSegments", "()V", called<mote_model_check_segments>),
      method("releasePages", "()V", called<mote_model_release_pages>),
      method("tokenize", "(Ljava/lang/String;ZZ)[I", tokenize),
      method("detokenize", "([IZ)Ljava/lang/String;", detokenize),
      method("openChat", "()J", open_chat),
      method("openSession", "(Lai/mote/Options;)J", open_session),
      method("openEmbedder", "(Lai/mote/Options;)J", open_embedder),
      method("openBatch", "(ILai/mote/Options;)J", open_batch),
      method("openAdapter", "(Ljava/lang/String;)J", open_adapter),
      method("openGrammar", "(ILjava/lang/String;Lai/mote/CancelCheck;)J", open_grammar),
  };
  return methods;
}

}  // namespace mote::java
