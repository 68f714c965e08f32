#include <array>

#include "apps/android/mote/src/main/cpp/calls.h"
#include "apps/android/mote/src/main/cpp/classes.h"
#include "apps/android/mote/src/main/cpp/options.h"
#include "apps/android/mote/src/main/cpp/values.h"

namespace mote::java {
namespace {

// call(chat, error)   other: a handle that it is given too
template <typename Call>
void check_chat(JNIEnv* env, jobject self, const Call& call, jobject other = nullptr) {
  auto* chat = handle_of<mote_chat>(env, self);
  check(env, {self, other}, [&](mote_error* error) { return call(chat, error); });
}

void set(JNIEnv* env, jobject self, jint field, jstring text) {
  guarded(env, [&] {
    const std::string value = text == nullptr ? "" : text_of(env, text, "text");
    check_chat(env, self, [&](mote_chat* chat, mote_error* error) {
      return mote_chat_set(chat, static_cast<mote_chat_field>(field), value.data(), value.size(), error);
    });
  });
}

void append_message(JNIEnv* env, jobject self, jstring message) {
  guarded(env, [&] {
    const std::string json = text_of(env, message, "message");
    check_chat(env, self, [&](mote_chat* chat, mote_error* error) {
      return mote_chat_append(chat, json.data(), json.size(), error);
    });
  });
}

// A negative index is as far beyond the messages as one can be.
void edit(JNIEnv* env, jobject self, jint index, jstring message) {
  guarded(env, [&] {
    const std::string json = text_of(env, message, "message");
    check_chat(env, self, [&](mote_chat* chat, mote_error* error) {
      return mote_chat_edit(chat, static_cast<size_t>(index), json.data(), json.size(), error);
    });
  });
}

void truncate(JNIEnv* env, jobject self, jint count) {
  guarded(env, [&] {
    check_chat(env, self, [&](mote_chat* chat, mote_error* error) {
      return mote_chat_truncate(chat, static_cast<size_t>(count), error);
    });
  });
}

jstring messages(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    auto* chat = handle_of<mote_chat>(env, self);
    return given_string(env, self,
                        [&](char** json, mote_error* error) { return mote_chat_messages(chat, json, nullptr, error); });
  });
}

jint num_messages(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    char* json = nullptr;
    size_t count = 0;
    check_chat(env, self,
               [&](mote_chat* chat, mote_error* error) { return mote_chat_messages(chat, &json, &count, error); });
    mote_string_free(json);
    return static_cast<jint>(count);
  });
}

jintArray prompt(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    return array_of(env, all_ids(0, [&](int32_t* ids, size_t capacity, size_t* count) {
                      check_chat(env, self, [&](mote_chat* chat, mote_error* error) {
                        return mote_chat_prompt(chat, ids, capacity, count, error);
                      });
                    }));
  });
}

// Asked by a chat for as long as this lives.
class AskedWhile {
 public:
  AskedWhile(JNIEnv* env, jobject self, jobject cancel_check)
      : chat_(handle_of<mote_chat>(env, self)), callback_(env, cancel_check, classes().is_cancelled) {
    if (!callback_.is_set()) return;
    check(env, self, [&](mote_error* error) {
      return mote_chat_set_is_cancelled(chat_, ask_whether_cancelled, &callback_, error);
    });
  }
  AskedWhile(const AskedWhile&) = delete;
  AskedWhile& operator=(const AskedWhile&) = delete;
  ~AskedWhile() {
    if (callback_.is_set()) mote_chat_set_is_cancelled(chat_, nullptr, nullptr, nullptr);
  }

 private:
  mote_chat* chat_;
  Callback callback_;
};

// begin(chat, session, options, turn, error)
template <typename Begin>
jlong begin_turn(JNIEnv* env, jobject self, jobject session, jobject options, jobject cancel_check,
                 const Begin& begin) {
  auto* of_chat = handle_of<mote_session>(env, session, "session");
  const Options of_reply(env, MOTE_SCOPE_GENERATION, options);
  const AskedWhile asked(env, self, cancel_check);
  std::unique_ptr<mote_chat_turn, Closer<mote_chat_turn_close>> owned;
  check_chat(
      env, self,
      [&](mote_chat* chat, mote_error* error) {
        mote_chat_turn* turn = nullptr;
        const mote_error_code code = begin(chat, of_chat, of_reply.get(), &turn, error);
        owned.reset(turn);
        return code;
      },
      session);
  return number_of(owned.release());
}

template <auto begin>
jlong open_turn(JNIEnv* env, jobject self, jobject session, jobject options, jobject cancel_check) {
  return guarded(env, [&] { return begin_turn(env, self, session, options, cancel_check, begin); });
}

jlong open_send(JNIEnv* env, jobject self, jobject session, jstring message, jobject options, jobject cancel_check) {
  return guarded(env, [&] {
    const std::string json = text_of(env, message, "message");
    return begin_turn(env, self, session, options, cancel_check,
                      [&](mote_chat* chat, mote_session* of_chat, const mote_options* of_reply, mote_chat_turn** turn,
                          mote_error* error) {
                        return mote_chat_send(chat, of_chat, json.data(), json.size(), of_reply, turn, error);
                      });
  });
}

void take_reply(JNIEnv* env, jobject self, jobject turn) {
  guarded(env, [&] {
    auto* of_chat = handle_of<mote_chat_turn>(env, turn, "turn");
    check_chat(
        env, self, [&](mote_chat* chat, mote_error* error) { return mote_chat_take_reply(chat, of_chat, error); },
        turn);
  });
}

// call(turn, error)
template <typename Call>
void check_turn(JNIEnv* env, jobject self, const Call& call) {
  auto* turn = handle_of<mote_chat_turn>(env, self);
  check(env, self, [&](mote_error* error) { return call(turn, error); });
}

jobject next_of_turn(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    auto event = sized<mote_chat_event>();
    check_turn(env, self,
               [&](mote_chat_turn* turn, mote_error* error) { return mote_chat_turn_next(turn, &event, error); });
    return object_of(env, event);
  });
}

void cancel_turn(JNIEnv* env, jobject self) {
  guarded(env, [&] { mote_chat_turn_cancel(handle_of<mote_chat_turn>(env, self)); });
}

void stop(JNIEnv* env, jobject self) {
  guarded(env, [&] { check_turn(env, self, mote_chat_turn_stop); });
}

jstring message(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    auto* turn = handle_of<mote_chat_turn>(env, self);
    return given_string(env, self,
                        [&](char** json, mote_error* error) { return mote_chat_turn_message(turn, json, error); });
  });
}

jobject statistics_of_turn(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    auto of_chat = sized<mote_chat_statistics>();
    auto of_generation = sized<mote_statistics>();
    check_turn(env, self, [&](mote_chat_turn* turn, mote_error* error) {
      return mote_chat_turn_statistics(turn, &of_chat, &of_generation, error);
    });
    return object_of(env, of_chat, of_generation);
  });
}

}  // namespace

Methods chat_methods() {
  constexpr const char* kOpenTurn = "(Lai/mote/blocking/Session;Lai/mote/Options;Lai/mote/CancelCheck;)J";
  static const std::array methods = {
      method("set", "(ILjava/lang/String;)V", set),
      method("append", "(Ljava/lang/String;)V", append_message),
      method("edit", "(ILjava/lang/String;)V", edit),
      method("truncate", "(I)V", truncate),
      method("messages", "()Ljava/lang/String;", messages),
      method("numMessages", "()I", num_messages),
      method("prompt", "()[I", prompt),
      method("openReply", kOpenTurn, open_turn<mote_chat_reply>),
      method("openSend", "(Lai/mote/blocking/Session;Ljava/lang/String;Lai/mote/Options;Lai/mote/CancelCheck;)J",
             open_send),
      method("openRegenerate", kOpenTurn, open_turn<mote_chat_regenerate>),
      method("openContinue", kOpenTurn, open_turn<mote_chat_continue>),
      method("takeReply", "(Lai/mote/blocking/ChatTurn;)V", take_reply),
  };
  return methods;
}

Methods chat_turn_methods() {
  static const std::array methods = {
      method("next", "()Lai/mote/ChatStep;", next_of_turn),
      method("cancel", "()V", cancel_turn),
      method("stop", "()V", stop),
      method("message", "()Ljava/lang/String;", message),
      method("statistics", "()Lai/mote/ChatStatistics;", statistics_of_turn),
  };
  return methods;
}

}  // namespace mote::java
