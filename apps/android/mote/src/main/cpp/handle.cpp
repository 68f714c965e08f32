// Closing, which may end what runs on a handle, as cancelled.
#include <array>

#include "apps/android/mote/src/main/cpp/calls.h"

namespace mote::java {
namespace {

template <typename T, auto close, auto... cancel>
void close_handle(intptr_t number, bool cancels) {
  auto* handle = reinterpret_cast<T*>(number);
  if (cancels) (cancel(handle), ...);
  close(handle);
}

// In the order of Handle.Kind.
constexpr std::array kCloses = {
    &close_handle<mote_model, mote_model_close>,
    &close_handle<mote_session, mote_session_close, mote_session_cancel>,
    &close_handle<mote_generation, mote_generation_end, mote_generation_cancel>,
    &close_handle<mote_chat, mote_chat_close>,
    &close_handle<mote_chat_turn, mote_chat_turn_close, mote_chat_turn_cancel>,
    &close_handle<mote_grammar, mote_grammar_close>,
    &close_handle<mote_prefix_cache, mote_prefix_cache_close>,
    &close_handle<mote_adapter, mote_adapter_close>,
    &close_handle<mote_batch, mote_batch_close>,
    &close_handle<mote_beams, mote_beams_close>,
    &close_handle<mote_embedder, mote_embedder_close, mote_embedder_cancel>,
    &close_handle<mote_store, mote_store_close>,
    &close_handle<mote_download, mote_download_close>,
};

void close(JNIEnv*, jclass, jint kind, jlong number, jboolean cancels) {
  kCloses[static_cast<size_t>(kind)](static_cast<intptr_t>(number), cancels == JNI_TRUE);
}

}  // namespace

Methods handle_methods() {
  static const std::array methods = {method("close", "(IJZ)V", close)};
  return methods;
}

}  // namespace mote::java
