#include <array>

#include "apps/android/mote/src/main/cpp/calls.h"
#include "apps/android/mote/src/main/cpp/classes.h"
#include "apps/android/mote/src/main/cpp/options.h"
#include "apps/android/mote/src/main/cpp/values.h"

namespace mote::java {
namespace {

// call(session, error)   other: a handle that it is given too
template <typename Call>
void check_session(JNIEnv* env, jobject self, const Call& call, jobject other = nullptr) {
  auto* session = handle_of<mote_session>(env, self);
  check(env, {self, other}, [&](mote_error* error) { return call(session, error); });
}

// `count` numbers that call(session, numbers, error) writes.
template <typename Call>
jfloatArray floats_from(JNIEnv* env, jobject self, size_t count, const Call& call) {
  std::vector<float> floats(count);
  check_session(env, self,
                [&](mote_session* session, mote_error* error) { return call(session, floats.data(), error); });
  return array_of(env, floats);
}

size_t vocab_size(JNIEnv* env, jobject self) {
  return static_cast<size_t>(env->GetIntField(self, classes().session_vocab_size));
}

jintArray tokenize_in_session(JNIEnv* env, jobject self, jstring text, jboolean parse_special) {
  return guarded(env, [&] {
    const std::string utf8 = text_of(env, text, "text");
    return array_of(env, all_ids(most_ids(utf8.size()), [&](int32_t* ids, size_t capacity, size_t* count) {
                      check_session(env, self, [&](mote_session* session, mote_error* error) {
                        return mote_session_tokenize(session, utf8.data(), utf8.size(), parse_special, ids, capacity,
                                                     count, error);
                      });
                    }));
  });
}

void append_tokens(JNIEnv* env, jobject self, jintArray ids) {
  guarded(env, [&] {
    const std::vector<int32_t> given = ints_of(env, ids, "ids");
    check_session(env, self, [&](mote_session* session, mote_error* error) {
      return mote_session_append(session, given.data(), given.size(), error);
    });
  });
}

// Of a call that says how many ids were kept.
template <auto call>
jlong kept(JNIEnv* env, jobject self, jintArray ids) {
  return guarded(env, [&] {
    const std::vector<int32_t> given = ints_of(env, ids, "ids");
    int64_t kept = 0;
    check_session(env, self, [&](mote_session* session, mote_error* error) {
      return call(session, given.data(), given.size(), &kept, error);
    });
    return jlong{kept};
  });
}

jintArray tokens(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    return array_of(env, all_ids(0, [&](int32_t* ids, size_t capacity, size_t* count) {
                      check_session(env, self, [&](mote_session* session, mote_error* error) {
                        return mote_session_tokens(session, ids, capacity, count, error);
                      });
                    }));
  });
}

jfloatArray prefill(JNIEnv* env, jobject self, jintArray ids) {
  return guarded(env, [&] {
    const std::vector<int32_t> given = ints_of(env, ids, "ids");
    return floats_from(env, self, vocab_size(env, self), [&](mote_session* session, float* logits, mote_error* error) {
      return mote_session_prefill(session, given.data(), given.size(), logits, error);
    });
  });
}

jfloatArray decode(JNIEnv* env, jobject self, jint id) {
  return guarded(env, [&] {
    return floats_from(env, self, vocab_size(env, self), [&](mote_session* session, float* logits, mote_error* error) {
      return mote_session_decode(session, id, logits, error);
    });
  });
}

jfloatArray logits(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    return floats_from(env, self, vocab_size(env, self),
                       [](auto... arguments) { return mote_session_logits(arguments...); });
  });
}

jfloatArray verify(JNIEnv* env, jobject self, jintArray ids) {
  return guarded(env, [&] {
    const std::vector<int32_t> given = ints_of(env, ids, "ids");
    const size_t count = given.size() * vocab_size(env, self);
    return floats_from(env, self, count, [&](mote_session* session, float* logits, mote_error* error) {
      return mote_session_verify(session, given.data(), given.size(), logits, error);
    });
  });
}

jfloatArray score_tokens(JNIEnv* env, jobject self, jintArray ids) {
  return guarded(env, [&] {
    const std::vector<int32_t> given = ints_of(env, ids, "ids");
    const size_t count = given.empty() ? 0 : given.size() - 1;
    return floats_from(env, self, count, [&](mote_session* session, float* logprobs, mote_error* error) {
      return mote_session_score(session, given.data(), given.size(), logprobs, error);
    });
  });
}

jobject info_of_session(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    auto info = sized<mote_session_info>();
    check_session(env, self, [&](mote_session* session, mote_error* error) {
      return mote_session_get_info(session, &info, error);
    });
    return object_of(
        env, classes().session_info,
        {info.context_length, info.num_threads, info.position, static_cast<int64_t>(info.state_bytes),
         static_cast<int64_t>(info.arena_bytes), static_cast<int64_t>(info.held_state_bytes), info.forgotten_tokens});
  });
}

jlong position(JNIEnv* env, jobject self) {
  return guarded(env, [&] { return jlong{mote_session_position(handle_of<mote_session>(env, self))}; });
}

template <auto call>
void plain(JNIEnv* env, jobject self) {
  guarded(env, [&] { check_session(env, self, call); });
}

void rewind(JNIEnv* env, jobject self, jlong position) {
  guarded(env, [&] {
    check_session(env, self, [&](mote_session* session, mote_error* error) {
      return mote_session_rewind(session, position, error);
    });
  });
}

void move_to(JNIEnv* env, jobject self, jstring backend) {
  guarded(env, [&] {
    const std::string target = text_of(env, backend, "backend");
    check_session(env, self, [&](mote_session* session, mote_error* error) {
      return mote_session_move_to(session, target.c_str(), error);
    });
  });
}

mote_error_code backend_of(mote_session* session, char** backend, mote_error* error) {
  return mote_session_get_backend(session, backend, nullptr, error);
}

mote_error_code reason_of_move(mote_session* session, char** reason, mote_error* error) {
  char* backend = nullptr;
  const mote_error_code code = mote_session_get_backend(session, &backend, reason, error);
  mote_string_free(backend);
  return code;
}

template <auto call>
void with_file(JNIEnv* env, jobject self, jstring path) {
  guarded(env, [&] {
    const std::string file = path_of(env, path);
    check_session(env, self,
                  [&](mote_session* session, mote_error* error) { return call(session, file.c_str(), error); });
  });
}

void cancel_session(JNIEnv* env, jobject self) {
  guarded(env, [&] { mote_session_cancel(handle_of<mote_session>(env, self)); });
}

void forget_cancel(JNIEnv* env, jobject self) {
  guarded(env, [&] { mote_session_forget_cancel(handle_of<mote_session>(env, self)); });
}

void set_draft_model(JNIEnv* env, jobject self, jobject draft) {
  guarded(env, [&] {
    auto* model = handle_or_null<mote_model>(env, draft);
    check_session(
        env, self,
        [&](mote_session* session, mote_error* error) { return mote_session_set_draft_model(session, model, error); },
        draft);
  });
}

void set_batch(JNIEnv* env, jobject self, jobject batch) {
  guarded(env, [&] {
    auto* of_batch = handle_or_null<mote_batch>(env, batch);
    check_session(
        env, self,
        [&](mote_session* session, mote_error* error) { return mote_session_set_batch(session, of_batch, error); },
        batch);
  });
}

std::vector<const mote_adapter*> adapters_of(JNIEnv* env, jobjectArray adapters) {
  if (adapters == nullptr) throw_null(env, "adapters");
  std::vector<const mote_adapter*> handles;
  for (jsize i = 0; i < env->GetArrayLength(adapters); ++i) {
    const Local<jobject> adapter(env, env->GetObjectArrayElement(adapters, i));
    handles.push_back(handle_of<mote_adapter>(env, adapter.get(), "adapters"));
  }
  return handles;
}

void set_adapters(JNIEnv* env, jobject self, jobjectArray adapters, jfloatArray weights) {
  guarded(env, [&] {
    const std::vector<const mote_adapter*> handles = adapters_of(env, adapters);
    std::vector<float> of_each(handles.size(), 1.0f);
    if (weights != nullptr) of_each = floats_of(env, weights, "weights");
    if (of_each.size() != handles.size()) {
      const jclass type = checked(env, env->FindClass("java/lang/IllegalArgumentException"));
      env->ThrowNew(type, "there must be as many weights as adapters");
      throw Pending{};
    }
    check_session(env, self, [&](mote_session* session, mote_error* error) {
      return mote_session_set_adapters(session, handles.data(), of_each.data(), handles.size(), error);
    });
  });
}

template <auto call>
jstring reported(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    auto* session = handle_of<mote_session>(env, self);
    return given_string(env, self, [&](char** json, mote_error* error) { return call(session, json, error); });
  });
}

jlong open_fork(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    mote_session* fork = nullptr;
    check_session(env, self,
                  [&](mote_session* session, mote_error* error) { return mote_session_fork(session, &fork, error); });
    return number_of(fork);
  });
}

// A text that begins with ids: begin(session, ids, count, options, &handle, error)
template <typename Handle, auto begin, int32_t scopes>
jlong open_text(JNIEnv* env, jobject self, jintArray ids, jobject options) {
  return guarded(env, [&] {
    const std::vector<int32_t> given = ints_of(env, ids, "ids");
    const Options of_text(env, scopes, options);
    Handle* handle = nullptr;
    check_session(env, self, [&](mote_session* session, mote_error* error) {
      return begin(session, given.data(), given.size(), of_text.get(), &handle, error);
    });
    return number_of(handle);
  });
}

}  // namespace

Methods session_methods() {
  constexpr auto kOpenGeneration = open_text<mote_generation, mote_generation_begin, MOTE_SCOPE_GENERATION>;
  constexpr auto kOpenBeams =
      open_text<mote_beams, mote_session_beam_search, MOTE_SCOPE_GENERATION | MOTE_SCOPE_BEAM_SEARCH>;
  static const std::array methods = {
      method("tokenize", "(Ljava/lang/String;Z)[I", tokenize_in_session),
      method("append", "([I)V", append_tokens),
      method("setTokens", "([I)J", kept<mote_session_set_tokens>),
      method("rewindToPrefix", "([I)J", kept<mote_session_rewind_to_prefix>),
      method("tokens", "()[I", tokens),
      method("prefill", "([I)[F", prefill),
      method("decode", "(I)[F", decode),
      method("logits", "()[F", logits),
      method("verify", "([I)[F", verify),
      method("score", "([I)[F", score_tokens),
      method("info", "()Lai/mote/SessionInfo;", info_of_session),
      method("position", "()J", position),
      method("reset", "()V", plain<mote_session_reset>),
      method("rewind", "(J)V", rewind),
      method("moveTo", "(Ljava/lang/String;)V", move_to),
      method("backend", "()Ljava/lang/String;", reported<backend_of>),
      method("movedBecause", "()Ljava/lang/String;", reported<reason_of_move>),
      method("save", "(Ljava/lang/String;)V", with_file<mote_session_save>),
      method("restore", "(Ljava/lang/String;)V", with_file<mote_session_restore>),
      method("cancel", "()V", cancel_session),
      method("forgetCancel", "()V", forget_cancel),
      method("setDraftModel", "(Lai/mote/blocking/Model;)V", set_draft_model),
      method("setAdapters", "([Lai/mote/blocking/Adapter;[F)V", set_adapters),
      method("attach", "(Lai/mote/blocking/Batch;)V", set_batch),
      method("checkGolden", "()Ljava/lang/String;", reported<mote_session_check_golden>),
      method("startProfile", "()V", plain<mote_session_start_profile>),
      method("stopProfile", "()Ljava/lang/String;", reported<mote_session_stop_profile>),
      method("openFork", "()J", open_fork),
      method("openGeneration", "([ILai/mote/Options;)J", kOpenGeneration),
      method("openBeams", "([ILai/mote/Options;)J", kOpenBeams),
  };
  return methods;
}

}  // namespace mote::java
