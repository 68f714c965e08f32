#include "apps/android/mote/src/main/cpp/classes.h"

#include <string>

#include "apps/android/mote/src/main/cpp/calls.h"

namespace mote::java {
namespace {

Classes loaded;

// Looks up; what is missing leaves an exception that ends the loading.
class Finder {
 public:
  explicit Finder(JNIEnv* env) : env_(env) {}

  jclass type(const char* name) const {
    const Local<jclass> local(env_, env_->FindClass(name));
    return static_cast<jclass>(env_->NewGlobalRef(local.get()));
  }
  jfieldID field(const char* of, const char* name, const char* signature) const {
    const Local<jclass> local(env_, env_->FindClass(of));
    return checked(env_, env_->GetFieldID(local.get(), name, signature));
  }
  jmethodID method(const char* of, const char* name, const char* signature) const {
    const Local<jclass> local(env_, env_->FindClass(of));
    return checked(env_, env_->GetMethodID(local.get(), name, signature));
  }
  jmethodID static_method(jclass of, const char* name, const char* signature) const {
    return checked(env_, env_->GetStaticMethodID(of, name, signature));
  }
  Constructor constructor(const char* name, const char* signature) const {
    const jclass found = type(name);
    return {found, checked(env_, env_->GetMethodID(found, "<init>", signature))};
  }
  void register_methods(const char* name, Methods methods) const {
    const Local<jclass> local(env_, env_->FindClass(name));
    env_->RegisterNatives(local.get(), methods.data(), static_cast<jint>(methods.size()));
    checked(env_, 0);
  }

 private:
  JNIEnv* env_;
};

void find_handles(const Finder& find) {
  loaded.handle = find.type("ai/mote/blocking/Handle");
  loaded.handle_number = find.field("ai/mote/blocking/Handle", "number", "J");
  loaded.closed_exception =
      find.method("ai/mote/blocking/Handle", "closedException", "()Ljava/lang/IllegalStateException;");
  loaded.session_vocab_size = find.field("ai/mote/blocking/Session", "vocabSize", "I");
}

void find_options(const Finder& find) {
  loaded.options_json = find.field("ai/mote/Options", "json", "Ljava/lang/String;");
  loaded.options_grammar = find.field("ai/mote/Options", "grammar", "Lai/mote/blocking/Grammar;");
  loaded.options_prefix_cache = find.field("ai/mote/Options", "prefixCache", "Lai/mote/blocking/PrefixCache;");
  const char* embed = "ai/mote/EmbedOptions";
  loaded.embed_dimensions = find.field(embed, "dimensions", "I");
  loaded.embed_prompt_name = find.field(embed, "promptName", "Ljava/lang/String;");
  loaded.embed_prompt = find.field(embed, "prompt", "Ljava/lang/String;");
  loaded.embed_keep_length = find.field(embed, "keepLength", "Z");
  loaded.embed_refuse_long = find.field(embed, "refuseLong", "Z");
  loaded.embed_plain_text = find.field(embed, "plainText", "Z");
  const char* download = "ai/mote/DownloadOptions";
  loaded.download_endpoint = find.field(download, "endpoint", "Ljava/lang/String;");
  loaded.download_token = find.field(download, "token", "Ljava/lang/String;");
  loaded.download_sha256 = find.field(download, "sha256", "Ljava/lang/String;");
  loaded.download_allow_metered = find.field(download, "allowMetered", "Z");
  loaded.download_keep_free_bytes = find.field(download, "keepFreeBytes", "J");
}

void find_callbacks(const Finder& find) {
  loaded.on_progress = find.method("ai/mote/ProgressListener", "onProgress", "(D)Z");
  loaded.is_cancelled = find.method("ai/mote/CancelCheck", "isCancelled", "()Z");
  loaded.on_line = find.method("ai/mote/LogListener", "onLine", "(Lai/mote/LogListener$Level;Ljava/lang/String;)V");
  loaded.log_level = find.type("ai/mote/LogListener$Level");
  loaded.log_level_values = find.static_method(loaded.log_level, "values", "()[Lai/mote/LogListener$Level;");
}

void find_values(const Finder& find) {
  loaded.string = find.type("java/lang/String");
  loaded.float_array = find.type("[F");
  loaded.mote_exception = find.type("ai/mote/MoteException");
  loaded.mote_exception_of =
      find.static_method(loaded.mote_exception, "of", "(ILjava/lang/String;Ljava/lang/String;)Lai/mote/MoteException;");
  loaded.model_info = find.constructor("ai/mote/ModelInfo", "([J)V");
  loaded.session_info = find.constructor("ai/mote/SessionInfo", "([J)V");
  loaded.memory = find.constructor("ai/mote/Memory", "([J)V");
  loaded.prefix_cache_info = find.constructor("ai/mote/PrefixCacheInfo", "([J)V");
  loaded.piece = find.constructor("ai/mote/Piece", "(ILjava/lang/String;IF[I[F)V");
  loaded.statistics = find.constructor("ai/mote/Statistics", "(I[J[DLjava/lang/String;)V");
  loaded.chat_step = find.constructor("ai/mote/ChatStep", "(IILjava/lang/String;Ljava/lang/String;IFI[I[F)V");
  loaded.chat_statistics = find.constructor("ai/mote/ChatStatistics", "([JLai/mote/Statistics;)V");
  loaded.stored_model =
      find.constructor("ai/mote/StoredModel", "(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;[J)V");
  loaded.download_progress =
      find.constructor("ai/mote/DownloadProgress", "(Ljava/lang/String;Ljava/lang/String;[JLjava/lang/String;)V");
  loaded.batch_piece =
      find.constructor("ai/mote/blocking/BatchPiece", "(JLai/mote/Piece;Lai/mote/MoteException;Lai/mote/Statistics;)V");
}

void register_all(const Finder& find) {
  find.register_methods("ai/mote/Mote", mote_methods());
  find.register_methods("ai/mote/blocking/Handle", handle_methods());
  find.register_methods("ai/mote/blocking/Model", model_methods());
  find.register_methods("ai/mote/blocking/Session", session_methods());
  find.register_methods("ai/mote/blocking/Generation", generation_methods());
  find.register_methods("ai/mote/blocking/Chat", chat_methods());
  find.register_methods("ai/mote/blocking/ChatTurn", chat_turn_methods());
  find.register_methods("ai/mote/blocking/Adapter", adapter_methods());
  find.register_methods("ai/mote/blocking/PrefixCache", prefix_cache_methods());
  find.register_methods("ai/mote/blocking/Beams", beams_methods());
  find.register_methods("ai/mote/blocking/Batch", batch_methods());
  find.register_methods("ai/mote/blocking/Embedder", embedder_methods());
  find.register_methods("ai/mote/blocking/ModelStore", store_methods());
  find.register_methods("ai/mote/blocking/Download", download_methods());
}

}  // namespace

const Classes& classes() { return loaded; }

bool load_classes(JNIEnv* env) {
  guarded(env, [&] {
    const Finder find(env);
    find_handles(find);
    find_options(find);
    find_callbacks(find);
    find_values(find);
    register_all(find);
  });
  return !env->ExceptionCheck();
}

}  // namespace mote::java
