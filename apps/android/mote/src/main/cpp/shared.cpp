// What several sessions use: adapters and prefix caches.
#include <array>

#include "apps/android/mote/src/main/cpp/calls.h"
#include "apps/android/mote/src/main/cpp/values.h"

namespace mote::java {
namespace {

jstring describe(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    auto* adapter = handle_of<mote_adapter>(env, self);
    return given_string(env, self,
                        [&](char** json, mote_error* error) { return mote_adapter_describe(adapter, json, error); });
  });
}

jlong open_prefix_cache(JNIEnv* env, jclass, jlong max_bytes) {
  return guarded(env, [&] {
    mote_prefix_cache* cache = nullptr;
    check(env, nullptr, [&](mote_error* error) {
      return mote_prefix_cache_open(max_bytes < 0 ? 0 : static_cast<uint64_t>(max_bytes), &cache, error);
    });
    return number_of(cache);
  });
}

void clear(JNIEnv* env, jobject self) {
  guarded(env, [&] {
    auto* cache = handle_of<mote_prefix_cache>(env, self);
    check(env, self, [&](mote_error* error) { return mote_prefix_cache_clear(cache, error); });
  });
}

jobject info_of_prefix_cache(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    auto* cache = handle_of<mote_prefix_cache>(env, self);
    auto info = sized<mote_prefix_cache_info>();
    check(env, self, [&](mote_error* error) { return mote_prefix_cache_get_info(cache, &info, error); });
    return object_of(env, classes().prefix_cache_info,
                     {static_cast<int64_t>(info.bytes), info.snapshots, info.hits, info.misses, info.reused_tokens});
  });
}

}  // namespace

Methods adapter_methods() {
  static const std::array methods = {method("describe", "()Ljava/lang/String;", describe)};
  return methods;
}

Methods prefix_cache_methods() {
  static const std::array methods = {
      method("open", "(J)J", open_prefix_cache),
      method("clear", "()V", clear),
      method("info", "()Lai/mote/PrefixCacheInfo;", info_of_prefix_cache),
  };
  return methods;
}

}  // namespace mote::java
