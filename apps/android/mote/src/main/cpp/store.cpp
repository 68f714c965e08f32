#include <array>

#include "apps/android/mote/src/main/cpp/calls.h"
#include "apps/android/mote/src/main/cpp/classes.h"

namespace mote::java {
namespace {

// nullptr for null.
class TextOrNull {
 public:
  TextOrNull(JNIEnv* env, jstring text) {
    if (text != nullptr) text_ = path_of(env, text);
  }
  const char* get() const { return text_ ? text_->c_str() : nullptr; }

 private:
  std::optional<std::string> text_{};
};

using Files = std::unique_ptr<mote_store_files, Closer<mote_store_files_close>>;

jobjectArray objects_of(JNIEnv* env, const Files& files) {
  const size_t count = mote_store_files_count(files.get());
  const jobjectArray objects =
      checked(env, env->NewObjectArray(static_cast<jsize>(count), classes().stored_model.type, nullptr));
  for (size_t i = 0; i < count; ++i) {
    auto file = sized<mote_store_file>();
    check(env, nullptr, [&](mote_error* error) { return mote_store_files_get(files.get(), i, &file, error); });
    const int64_t numbers[] = {static_cast<int64_t>(file.bytes), static_cast<int64_t>(file.total_bytes), file.is_whole,
                               file.last_used_s};
    const Local<jlongArray> array(env, array_of(env, numbers));
    const Local<jstring> name(env, string_of(env, file.name));
    const Local<jstring> path(env, string_of(env, file.path));
    const Local<jstring> manifest(env, string_of(env, file.manifest));
    const Local<jobject> object(env, classes().stored_model(env, name.get(), path.get(), manifest.get(), array.get()));
    env->SetObjectArrayElement(objects, static_cast<jsize>(i), object.get());
  }
  return objects;
}

jlong open_store(JNIEnv* env, jclass, jstring root) {
  return guarded(env, [&] {
    const TextOrNull folder(env, root);
    mote_store* store = nullptr;
    check(env, nullptr, [&](mote_error* error) { return mote_store_open(folder.get(), &store, error); });
    return number_of(store);
  });
}

jobjectArray list(JNIEnv* env, jobject self, jstring name) {
  return guarded(env, [&] {
    auto* store = handle_of<mote_store>(env, self);
    const TextOrNull wanted(env, name);
    mote_store_files* files = nullptr;
    check(env, self, [&](mote_error* error) { return mote_store_list(store, wanted.get(), &files, error); });
    return objects_of(env, Files(files));
  });
}

jstring find(JNIEnv* env, jobject self, jstring name) {
  return guarded(env, [&] {
    auto* store = handle_of<mote_store>(env, self);
    const std::string wanted = path_of(env, name);
    return given_string(
        env, self, [&](char** path, mote_error* error) { return mote_store_find(store, wanted.c_str(), path, error); });
  });
}

jlong remove(JNIEnv* env, jobject self, jstring name) {
  return guarded(env, [&] {
    auto* store = handle_of<mote_store>(env, self);
    const std::string wanted = path_of(env, name);
    uint64_t freed = 0;
    check(env, self, [&](mote_error* error) { return mote_store_remove(store, wanted.c_str(), &freed, error); });
    return static_cast<jlong>(freed);
  });
}

jobjectArray evict(JNIEnv* env, jobject self, jlong max_bytes) {
  return guarded(env, [&] {
    auto* store = handle_of<mote_store>(env, self);
    const auto most = static_cast<uint64_t>(std::max<jlong>(max_bytes, 0));
    mote_store_files* files = nullptr;
    check(env, self, [&](mote_error* error) { return mote_store_evict(store, most, &files, error); });
    return objects_of(env, Files(files));
  });
}

jlong open_download(JNIEnv* env, jobject self, jstring what, jobject given) {
  return guarded(env, [&] {
    auto* store = handle_of<mote_store>(env, self);
    const std::string wanted = path_of(env, what);
    if (given == nullptr) throw_null(env, "options");
    const Classes& of = classes();
    const auto text = [&](jfieldID field) {
      const Local<jobject> value(env, env->GetObjectField(given, field));
      return TextOrNull(env, static_cast<jstring>(value.get()));
    };
    const TextOrNull endpoint = text(of.download_endpoint), token = text(of.download_token);
    const TextOrNull sha256 = text(of.download_sha256);
    auto options = sized<mote_download_options>();
    options.endpoint = endpoint.get();
    options.token = token.get();
    options.sha256 = sha256.get();
    options.allow_metered = env->GetBooleanField(given, of.download_allow_metered);
    options.keep_free_bytes = env->GetLongField(given, of.download_keep_free_bytes);
    mote_download* download = nullptr;
    check(env, self,
          [&](mote_error* error) { return mote_download_begin(store, wanted.c_str(), &options, &download, error); });
    return number_of(download);
  });
}

jobjectArray step_download(JNIEnv* env, jobject self) {
  return guarded(env, [&]() -> jobjectArray {
    auto* download = handle_of<mote_download>(env, self);
    auto step = sized<mote_download_step>();
    check(env, self, [&](mote_error* error) { return mote_download_next(download, &step, error); });
    if (step.action == MOTE_DOWNLOAD_DONE) return nullptr;
    const std::string texts[] = {step.url, step.headers, std::to_string(step.wait_ms), step.reason};
    const jobjectArray array = checked(env, env->NewObjectArray(std::size(texts), classes().string, nullptr));
    for (size_t i = 0; i < std::size(texts); ++i) {
      const Local<jstring> text(env, string_of(env, texts[i]));
      env->SetObjectArrayElement(array, static_cast<jsize>(i), text.get());
    }
    return array;
  });
}

jboolean respond(JNIEnv* env, jobject self, jint status, jstring headers) {
  return guarded(env, [&]() -> jboolean {
    auto* download = handle_of<mote_download>(env, self);
    const std::string lines = text_of(env, headers, "headers");
    int32_t wants_body = 0;
    check(env, self, [&](mote_error* error) {
      return mote_download_respond(download, status, lines.data(), lines.size(), &wants_body, error);
    });
    return wants_body != 0 ? JNI_TRUE : JNI_FALSE;
  });
}

void write(JNIEnv* env, jobject self, jbyteArray bytes, jint count) {
  guarded(env, [&] {
    auto* download = handle_of<mote_download>(env, self);
    std::vector<jbyte> data(static_cast<size_t>(count));
    env->GetByteArrayRegion(bytes, 0, count, data.data());
    checked(env, 0);
    check(env, self, [&](mote_error* error) { return mote_download_write(download, data.data(), data.size(), error); });
  });
}

void end(JNIEnv* env, jobject self, jstring broken) {
  guarded(env, [&] {
    auto* download = handle_of<mote_download>(env, self);
    const std::string reason = text_of(env, broken, "broken");
    check(env, self, [&](mote_error* error) { return mote_download_end(download, reason.c_str(), error); });
  });
}

void set_metered(JNIEnv* env, jobject self, jboolean is_metered) {
  guarded(env, [&] { mote_download_set_metered(handle_of<mote_download>(env, self), is_metered == JNI_TRUE); });
}

jobject progress(JNIEnv* env, jobject self, jstring waits_for) {
  return guarded(env, [&] {
    auto* download = handle_of<mote_download>(env, self);
    auto info = sized<mote_download_info>();
    check(env, self, [&](mote_error* error) { return mote_download_get_info(download, &info, error); });
    const int64_t numbers[] = {info.bytes, info.total_bytes, info.is_new, info.is_done};
    const Local<jlongArray> array(env, array_of(env, numbers));
    const Local<jstring> name(env, string_of(env, info.name));
    const Local<jstring> path(env, string_of(env, info.path));
    return checked(env, classes().download_progress(env, name.get(), path.get(), array.get(), waits_for));
  });
}

}  // namespace

Methods store_methods() {
  static const std::array methods = {
      method("open", "(Ljava/lang/String;)J", open_store),
      method("list", "(Ljava/lang/String;)[Lai/mote/StoredModel;", list),
      method("find", "(Ljava/lang/String;)Ljava/lang/String;", find),
      method("remove", "(Ljava/lang/String;)J", remove),
      method("evict", "(J)[Lai/mote/StoredModel;", evict),
      method("openDownload", "(Ljava/lang/String;Lai/mote/DownloadOptions;)J", open_download),
  };
  return methods;
}

Methods download_methods() {
  static const std::array methods = {
      method("step", "()[Ljava/lang/String;", step_download),
      method("respond", "(ILjava/lang/String;)Z", respond),
      method("write", "([BI)V", write),
      method("end", "(Ljava/lang/String;)V", end),
      method("setMetered", "(Z)V", set_metered),
      method("progress", "(Ljava/lang/String;)Lai/mote/DownloadProgress;", progress),
  };
  return methods;
}

}  // namespace mote::java
