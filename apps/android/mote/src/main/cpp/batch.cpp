#include <array>

#include "apps/android/mote/src/main/cpp/calls.h"
#include "apps/android/mote/src/main/cpp/options.h"
#include "apps/android/mote/src/main/cpp/values.h"

namespace mote::java {
namespace {

jlong add(JNIEnv* env, jobject self, jobject session, jintArray ids, jobject options) {
  return guarded(env, [&] {
    auto* batch = handle_of<mote_batch>(env, self);
    auto* continued = handle_or_null<mote_session>(env, session);
    const std::vector<int32_t> given = ints_of(env, ids, "ids");
    const Options of_text(env, MOTE_SCOPE_GENERATION, options);
    int64_t sequence = -1;
    check(env, {self, session}, [&](mote_error* error) {
      return mote_batch_add(batch, continued, given.data(), given.size(), of_text.get(), &sequence, error);
    });
    return jlong{sequence};
  });
}

jlong add_fork(JNIEnv* env, jobject self, jobject session, jintArray ids, jobject options) {
  return guarded(env, [&] {
    auto* batch = handle_of<mote_batch>(env, self);
    auto* forked = handle_of<mote_session>(env, session, "session");
    const std::vector<int32_t> given = ints_of(env, ids, "ids");
    const Options of_text(env, MOTE_SCOPE_GENERATION, options);
    int64_t sequence = -1;
    check(env, {self, session}, [&](mote_error* error) {
      return mote_batch_add_fork(batch, forked, given.data(), given.size(), of_text.get(), &sequence, error);
    });
    return jlong{sequence};
  });
}

void cancel_sequence(JNIEnv* env, jobject self, jlong sequence) {
  guarded(env, [&] { mote_batch_cancel(handle_of<mote_batch>(env, self), sequence); });
}

jlong num_sequences(JNIEnv* env, jobject self) {
  return guarded(env, [&] { return jlong{mote_batch_num_sequences(handle_of<mote_batch>(env, self))}; });
}

jobject piece_of(JNIEnv* env, mote_batch* batch, size_t index) {
  int64_t sequence = -1;
  auto piece = sized<mote_piece>();
  auto error = sized<mote_error>();
  const mote_error_code code = mote_batch_piece(batch, index, &sequence, &piece, &error);
  const Local<jobject> text(env, code == MOTE_OK ? object_of(env, piece) : nullptr);
  const Local<jthrowable> failure(env, code == MOTE_OK ? nullptr : exception_of(env, error));
  auto statistics = sized<mote_statistics>();
  const bool is_last = mote_batch_statistics(batch, index, &statistics, nullptr) == MOTE_OK;
  const Local<jobject> of_last(env, is_last ? object_of(env, statistics) : nullptr);
  return checked(env, classes().batch_piece(env, jlong{sequence}, text.get(), failure.get(), of_last.get()));
}

jobjectArray step_batch(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    auto* batch = handle_of<mote_batch>(env, self);
    size_t count = 0;
    check(env, self, [&](mote_error* error) { return mote_batch_step(batch, &count, error); });
    const jobjectArray pieces =
        checked(env, env->NewObjectArray(static_cast<jsize>(count), classes().batch_piece.type, nullptr));
    for (size_t i = 0; i < count; ++i) {
      const Local<jobject> piece(env, piece_of(env, batch, i));
      env->SetObjectArrayElement(pieces, static_cast<jsize>(i), piece.get());
    }
    return pieces;
  });
}

}  // namespace

Methods batch_methods() {
  constexpr const char* kAdd = "(Lai/mote/blocking/Session;[ILai/mote/Options;)J";
  static const std::array methods = {
      method("add", kAdd, add),
      method("addFork", kAdd, add_fork),
      method("cancel", "(J)V", cancel_sequence),
      method("numSequences", "()J", num_sequences),
      method("step", "()[Lai/mote/blocking/BatchPiece;", step_batch),
  };
  return methods;
}

}  // namespace mote::java
