#include "apps/android/mote/src/main/cpp/values.h"

#include "apps/android/mote/src/main/cpp/calls.h"

namespace mote::java {
namespace {

int64_t signed_of(uint64_t bytes) { return static_cast<int64_t>(bytes); }

// Both nullptr if there are none, which is what most tokens have.
class TopLogprobs {
 public:
  TopLogprobs(JNIEnv* env, const mote_token_logprob* top, size_t count) : env_(env) {
    if (count == 0) return;
    std::vector<int32_t> ids;
    std::vector<float> logprobs;
    for (size_t i = 0; i < count; ++i) {
      ids.push_back(top[i].id);
      logprobs.push_back(top[i].logprob);
    }
    ids_ = array_of(env, ids);
    logprobs_ = array_of(env, logprobs);
  }
  TopLogprobs(const TopLogprobs&) = delete;
  TopLogprobs& operator=(const TopLogprobs&) = delete;
  ~TopLogprobs() {
    env_->DeleteLocalRef(ids_);
    env_->DeleteLocalRef(logprobs_);
  }
  jintArray ids() const { return ids_; }
  jfloatArray logprobs() const { return logprobs_; }

 private:
  JNIEnv* env_;
  jintArray ids_ = nullptr;
  jfloatArray logprobs_ = nullptr;
};

}  // namespace

jobject object_of(JNIEnv* env, const Constructor& make, std::initializer_list<int64_t> numbers) {
  const Local<jlongArray> array(env, array_of(env, std::span<const int64_t>(numbers.begin(), numbers.size())));
  return checked(env, make(env, array.get()));
}

jobject object_of(JNIEnv* env, const mote_piece& piece) {
  const Local<jstring> text(env, string_of(env, {piece.text, piece.text_bytes}));
  const TopLogprobs top(env, piece.top_logprobs, piece.num_top_logprobs);
  const jint reason = piece.finished != 0 ? jint{piece.finish_reason} : jint{MOTE_FINISH_NONE};
  return checked(
      env, classes().piece(env, jint{piece.id}, text.get(), reason, jfloat{piece.logprob}, top.ids(), top.logprobs()));
}

jobject object_of(JNIEnv* env, const mote_chat_event& event) {
  const Local<jstring> text(env, string_of(env, {event.text, event.text_bytes}));
  const Local<jstring> call_id(env, string_of(env, event.call_id == nullptr ? "" : event.call_id));
  const TopLogprobs top(env, event.top_logprobs, event.num_top_logprobs);
  return checked(env, classes().chat_step(env, jint{event.kind}, jint{event.call_index}, text.get(), call_id.get(),
                                          jint{event.token_id}, jfloat{event.logprob}, jint{event.finish_reason},
                                          top.ids(), top.logprobs()));
}

jobject object_of(JNIEnv* env, const mote_statistics& from) {
  const int64_t counts[] = {
      from.prompt_tokens, from.generated_tokens, signed_of(from.peak_rss_bytes), signed_of(from.peak_private_bytes),
      from.forced_tokens, from.proposed_tokens,  from.accepted_tokens,           from.num_drafts};
  const double numbers[] = {from.prefill_seconds, from.decode_seconds, from.time_to_first_token_seconds,
                            from.mean_run_length, from.speculative_speed_up};
  const Local<jlongArray> count_array(env, array_of(env, counts));
  const Local<jdoubleArray> number_array(env, array_of(env, numbers));
  const Local<jstring> reason(
      env, from.speculative_off_reason == nullptr ? nullptr : string_of(env, from.speculative_off_reason));
  return checked(
      env, classes().statistics(env, jint{from.finish_reason}, count_array.get(), number_array.get(), reason.get()));
}

jobject object_of(JNIEnv* env, const mote_chat_statistics& of_chat, const mote_statistics& of_generation) {
  const Local<jobject> generation(env, object_of(env, of_generation));
  const int64_t counts[] = {of_chat.prompt_tokens, of_chat.kept_tokens, of_chat.forgotten_tokens, of_chat.position,
                            of_chat.context_length};
  const Local<jlongArray> array(env, array_of(env, counts));
  return checked(env, classes().chat_statistics(env, array.get(), generation.get()));
}

}  // namespace mote::java
