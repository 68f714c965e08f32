// Texts while they are written: generations and beams.
#include <array>

#include "apps/android/mote/src/main/cpp/calls.h"
#include "apps/android/mote/src/main/cpp/values.h"

namespace mote::java {
namespace {

jobject next_of_generation(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    auto* generation = handle_of<mote_generation>(env, self);
    auto piece = sized<mote_piece>();
    check(env, self, [&](mote_error* error) { return mote_generation_next(generation, &piece, error); });
    return object_of(env, piece);
  });
}

void cancel_generation(JNIEnv* env, jobject self) {
  guarded(env, [&] { mote_generation_cancel(handle_of<mote_generation>(env, self)); });
}

jobject statistics_of_generation(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    auto* generation = handle_of<mote_generation>(env, self);
    auto statistics = sized<mote_statistics>();
    check(env, self, [&](mote_error* error) { return mote_generation_statistics(generation, &statistics, error); });
    return object_of(env, statistics);
  });
}

jint size(JNIEnv* env, jobject self) {
  return guarded(env, [&] { return static_cast<jint>(mote_beams_count(handle_of<mote_beams>(env, self))); });
}

struct Beam {
  std::span<const int32_t> ids;
  float score = 0.0f;
};

Beam beam(JNIEnv* env, jobject self, jint index) {
  auto* beams = handle_of<mote_beams>(env, self);
  const int32_t* ids = nullptr;
  size_t count = 0;
  Beam result;
  check(env, self, [&](mote_error* error) {
    return mote_beams_get(beams, static_cast<size_t>(index), &ids, &count, &result.score, error);
  });
  result.ids = {ids, count};
  return result;
}

jintArray ids(JNIEnv* env, jobject self, jint index) {
  return guarded(env, [&] { return array_of(env, beam(env, self, index).ids); });
}

jfloat score_of(JNIEnv* env, jobject self, jint index) {
  return guarded(env, [&] { return jfloat{beam(env, self, index).score}; });
}

}  // namespace

Methods generation_methods() {
  static const std::array methods = {
      method("next", "()Lai/mote/Piece;", next_of_generation),
      method("cancel", "()V", cancel_generation),
      method("statistics", "()Lai/mote/Statistics;", statistics_of_generation),
  };
  return methods;
}

Methods beams_methods() {
  static const std::array methods = {
      method("size", "()I", size),
      method("ids", "(I)[I", ids),
      method("score", "(I)F", score_of),
  };
  return methods;
}

}  // namespace mote::java
