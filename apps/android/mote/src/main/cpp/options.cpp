#include "apps/android/mote/src/main/cpp/options.h"

#include "apps/android/mote/src/main/cpp/classes.h"

namespace mote::java {

Options::Options(JNIEnv* env, int32_t scopes, jobject options) {
  mote_options* handle = nullptr;
  check(env, nullptr, [&](mote_error* error) { return mote_options_open(scopes, &handle, error); });
  handle_.reset(handle);
  if (options == nullptr) return;
  const Local<jobject> json(env, env->GetObjectField(options, classes().options_json));
  const Local<jobject> grammar(env, env->GetObjectField(options, classes().options_grammar));
  const Local<jobject> cache(env, env->GetObjectField(options, classes().options_prefix_cache));
  const std::string text = text_of(env, static_cast<jstring>(json.get()), "options");
  check(env, nullptr,
        [&](mote_error* error) { return mote_options_set_json(handle, text.data(), text.size(), error); });
  if (grammar.get() != nullptr) {
    auto* of_grammar = handle_of<mote_grammar>(env, grammar.get());
    check(env, grammar.get(), [&](mote_error* error) { return mote_options_set_grammar(handle, of_grammar, error); });
  }
  if (cache.get() != nullptr) {
    auto* of_cache = handle_of<mote_prefix_cache>(env, cache.get());
    check(env, cache.get(), [&](mote_error* error) { return mote_options_set_prefix_cache(handle, of_cache, error); });
  }
}

void Options::set_progress(JNIEnv* env, Callback* progress) {
  const mote_progress tell = [](void* user_data, double fraction) -> int32_t {
    return static_cast<Callback*>(user_data)->ask(jdouble{fraction}).value_or(false) ? 0 : 1;
  };
  check(env, nullptr, [&](mote_error* error) { return mote_options_set_progress(get(), tell, progress, error); });
}

}  // namespace mote::java
