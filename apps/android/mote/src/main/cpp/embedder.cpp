#include <array>
#include <optional>

#include "apps/android/mote/src/main/cpp/calls.h"
#include "apps/android/mote/src/main/cpp/classes.h"

namespace mote::java {
namespace {

// Those of Java for one call. Not copied: the struct points into it.
class EmbedOptions {
 public:
  EmbedOptions(JNIEnv* env, jobject options) {
    if (options == nullptr) return;
    const Classes& of = classes();
    options_.dimensions = env->GetIntField(options, of.embed_dimensions);
    options_.keep_length = env->GetBooleanField(options, of.embed_keep_length);
    options_.refuse_long = env->GetBooleanField(options, of.embed_refuse_long);
    options_.plain_text = env->GetBooleanField(options, of.embed_plain_text);
    prompt_name_ = text_or_none(env, options, of.embed_prompt_name);
    prompt_ = text_or_none(env, options, of.embed_prompt);
    if (prompt_name_) options_.prompt_name = prompt_name_->c_str();
    if (prompt_) options_.prompt = prompt_->c_str();
    if (prompt_) options_.prompt_bytes = prompt_->size();
  }
  EmbedOptions(const EmbedOptions&) = delete;
  EmbedOptions& operator=(const EmbedOptions&) = delete;
  const mote_embed_options* get() const { return &options_; }

 private:
  static std::optional<std::string> text_or_none(JNIEnv* env, jobject options, jfieldID field) {
    const Local<jobject> text(env, env->GetObjectField(options, field));
    if (text.get() == nullptr) return std::nullopt;
    return text_of(env, static_cast<jstring>(text.get()), "text");
  }

  mote_embed_options options_ = sized<mote_embed_options>();
  std::optional<std::string> prompt_name_{}, prompt_{};
};

std::vector<std::string> texts_of(JNIEnv* env, jobjectArray texts) {
  if (texts == nullptr) throw_null(env, "texts");
  std::vector<std::string> result;
  for (jsize i = 0; i < env->GetArrayLength(texts); ++i) {
    const Local<jobject> text(env, env->GetObjectArrayElement(texts, i));
    result.push_back(text_of(env, static_cast<jstring>(text.get()), "texts"));
  }
  return result;
}

size_t dimensions_of(JNIEnv* env, jobject self, const EmbedOptions& options) {
  size_t dimensions = 0;
  auto* embedder = handle_of<mote_embedder>(env, self);
  check(env, self,
        [&](mote_error* error) { return mote_embedder_dimensions(embedder, options.get(), &dimensions, error); });
  return dimensions;
}

jint dimensions(JNIEnv* env, jobject self, jobject options) {
  return guarded(env, [&] { return static_cast<jint>(dimensions_of(env, self, EmbedOptions(env, options))); });
}

jobjectArray rows_of(JNIEnv* env, const std::vector<float>& values, size_t count, size_t width) {
  const jobjectArray rows =
      checked(env, env->NewObjectArray(static_cast<jsize>(count), classes().float_array, nullptr));
  for (size_t i = 0; i < count; ++i) {
    const Local<jfloatArray> row(env, array_of(env, std::span(values).subspan(i * width, width)));
    env->SetObjectArrayElement(rows, static_cast<jsize>(i), row.get());
  }
  return rows;
}

jobjectArray embed(JNIEnv* env, jobject self, jobjectArray texts, jobject options) {
  return guarded(env, [&] {
    auto* embedder = handle_of<mote_embedder>(env, self);
    const EmbedOptions given(env, options);
    const std::vector<std::string> of_texts = texts_of(env, texts);
    const size_t width = dimensions_of(env, self, given);
    std::vector<mote_embed_input> inputs;
    for (const std::string& text : of_texts) inputs.push_back({text.data(), text.size(), nullptr, 0});
    std::vector<float> vectors(inputs.size() * width);
    check(env, self, [&](mote_error* error) {
      return mote_embedder_embed(embedder, inputs.data(), inputs.size(), given.get(), vectors.data(), nullptr, error);
    });
    return rows_of(env, vectors, inputs.size(), width);
  });
}

void cancel_embedding(JNIEnv* env, jobject self) {
  guarded(env, [&] { mote_embedder_cancel(handle_of<mote_embedder>(env, self)); });
}

jstring check_golden(JNIEnv* env, jobject self) {
  return guarded(env, [&] {
    auto* embedder = handle_of<mote_embedder>(env, self);
    return given_string(
        env, self, [&](char** json, mote_error* error) { return mote_embedder_check_golden(embedder, json, error); });
  });
}

}  // namespace

Methods embedder_methods() {
  static const std::array methods = {
      method("embed", "([Ljava/lang/String;Lai/mote/EmbedOptions;)[[F", embed),
      method("dimensions", "(Lai/mote/EmbedOptions;)I", dimensions),
      method("cancel", "()V", cancel_embedding),
      method("checkGolden", "()Ljava/lang/String;", check_golden),
  };
  return methods;
}

}  // namespace mote::java
