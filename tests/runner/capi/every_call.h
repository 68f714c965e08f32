// Every call of the C API that takes a handle, for tests of what must not be done with them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/runner/capi/fixture.h"

namespace mote {

// One kind of handle: an open one, and every call that takes it.
struct Kind {
  const char* name;
  void* handle;
  std::function<void(void*)> close;
  std::vector<std::function<int32_t(void*)>> calls;
};

template <typename Handle>
Kind kind(const char* name, Handle* handle, void (*close)(Handle*),
          std::vector<std::function<int32_t(Handle*)>> typed) {
  Kind result{name, handle, [close](void* any) { close(static_cast<Handle*>(any)); }, {}};
  for (auto& call : typed) result.calls.push_back([call](void* any) { return call(static_cast<Handle*>(any)); });
  return result;
}

class CApiMisuse : public CApi {
 protected:
  void SetUp() override {
    CApi::SetUp();
    ASSERT_EQ(mote_options_open(kEveryScope, &options_, &error_), MOTE_OK);
    ASSERT_EQ(mote_session_open(model_, nullptr, &other_session_, &error_), MOTE_OK);
    const auto grammar_options = [] {
      auto options = sized<mote_grammar_options>();
      options.syntax = MOTE_SYNTAX_REGEX;
      options.source = "a";
      options.source_bytes = 1;
      return options;
    }();
    const char* token = "a";
    const size_t one = 1;
    const auto reply_options = sized<mote_reply_options>();
    auto conversation = sized<mote_conversation>();
    conversation.messages = "[]";
    ASSERT_EQ(mote_prefix_cache_open(1 << 20, &cache_, &error_), MOTE_OK);
    ASSERT_EQ(mote_vocabulary_open(&token, &one, 1, nullptr, 0, &vocabulary_, &error_), MOTE_OK);
    ASSERT_EQ(mote_grammar_open(vocabulary_, &grammar_options, &grammar_, &error_), MOTE_OK) << error_.message;
    ASSERT_EQ(mote_constraint_open(grammar_, &constraint_, &error_), MOTE_OK);
    ASSERT_EQ(mote_chat_template_open("x", 1, &template_, &error_), MOTE_OK);
    ASSERT_EQ(mote_chat_template_render(template_, &conversation, &prompt_, &error_), MOTE_OK) << error_.message;
    ASSERT_EQ(mote_reply_open(&reply_options, &reply_, &error_), MOTE_OK);
    ASSERT_EQ(mote_batch_open(model_, 0, nullptr, &batch_, &error_), MOTE_OK) << error_.message;
    ASSERT_EQ(mote_chat_open(model_, &chat_, &error_), MOTE_OK) << error_.message;
    ASSERT_EQ(mote_store_open(store_folder_.c_str(), &store_, &error_), MOTE_OK) << error_.message;
    ASSERT_EQ(mote_store_list(store_, nullptr, &files_, &error_), MOTE_OK) << error_.message;
    ASSERT_EQ(mote_download_begin(store_, "org/first", nullptr, &download_, &error_), MOTE_OK) << error_.message;
    const GivenOptions two_tokens(R"({"max_new_tokens": 2})");
    ASSERT_EQ(mote_session_beam_search(other_session_, &id_, 1, two_tokens, &beams_, &error_), MOTE_OK)
        << error_.message;
    ASSERT_EQ(mote_generation_begin(other_session_, &id_, 1, nullptr, &generation_, &error_), MOTE_OK);
  }
  void TearDown() override {
    for (const Kind& each : kinds()) each.close(each.handle);
    model_ = nullptr;
    session_ = nullptr;
    mote_session_close(other_session_);
    mote_chat_close(chat_);
    mote_constraint_close(made_.constraint);
    mote_constraint_close(copy_);
    mote_string_free(text_);
    std::filesystem::remove_all(store_folder_);
    CApi::TearDown();
  }

  std::vector<Kind> kinds() {
    return {kind<mote_model>("model", model_, mote_model_close, model_calls()),
            kind<mote_session>("session", session_, mote_session_close, session_calls()),
            kind<mote_prefix_cache>("prefix cache", cache_, mote_prefix_cache_close, cache_calls()),
            kind<mote_generation>("generation", generation_, mote_generation_end, generation_calls()),
            kind<mote_batch>("batch", batch_, mote_batch_close, batch_calls()),
            kind<mote_vocabulary>("vocabulary", vocabulary_, mote_vocabulary_close, vocabulary_calls()),
            kind<mote_grammar>("grammar", grammar_, mote_grammar_close, grammar_calls()),
            kind<mote_constraint>("constraint", constraint_, mote_constraint_close, constraint_calls()),
            kind<mote_chat_template>("chat template", template_, mote_chat_template_close, template_calls()),
            kind<mote_prompt>("prompt", prompt_, mote_prompt_close, prompt_calls()),
            kind<mote_reply>("reply", reply_, mote_reply_close, reply_calls()),
            kind<mote_beams>("list of beams", beams_, mote_beams_close, beams_calls()),
            kind<mote_store>("store", store_, mote_store_close, store_calls()),
            kind<mote_store_files>("list of files", files_, mote_store_files_close, files_calls()),
            kind<mote_download>("download", download_, mote_download_close, download_calls()),
            kind<mote_options>("set of options", options_, mote_options_close, options_calls())};
  }
  template <typename Handle>
  using Calls = std::vector<std::function<int32_t(Handle*)>>;

  Calls<mote_model> model_calls() {
    return {[&](auto* h) { return mote_model_get_info(h, &info_, &error_); },
            [&](auto* h) { return mote_model_describe(h, &text_, &error_); },
            [&](auto* h) { return mote_model_chat_template(h, &text_, nullptr, &error_); },
            [&](auto* h) { return mote_model_generation_config(h, &text_, &error_); },
            [&](auto* h) { return mote_model_check_segments(h, &error_); },
            [&](auto* h) { return mote_model_release_pages(h, &error_); },
            [&](auto* h) { return mote_model_vocabulary(h, &made_.vocabulary, &error_); },
            [&](auto* h) { return mote_tokenize(h, "a", 1, 0, 0, nullptr, 0, &count_, &error_); },
            [&](auto* h) { return mote_detokenize(h, &id_, 1, 0, &text_, nullptr, &error_); },
            [&](auto* h) { return mote_prompt_tokenize(h, prompt_, nullptr, 0, &count_, &error_); },
            [&](auto* h) { return mote_model_render(h, &conversation_, &made_.prompt, &error_); },
            [&](auto* h) { return mote_model_reply_open(h, nullptr, &made_.reply, &error_); },
            [&](auto* h) { return mote_session_open(h, nullptr, &made_.session, &error_); },
            [&](auto* h) { return mote_adapter_open(h, "/nowhere/at/all", nullptr, &adapter_, &error_); },
            [&](auto* h) {
              return h == nullptr ? MOTE_ERROR_INVALID_ARGUMENT : mote_session_set_draft_model(session_, h, &error_);
            },
            [&](auto* h) { return mote_batch_open(h, 0, nullptr, &made_.batch, &error_); },
            [&](auto* h) {
              return h == nullptr ? MOTE_ERROR_INVALID_ARGUMENT
                                  : mote_options_values(GivenOptions(), h, &text_, &error_);
            },
            [&](auto* h) { return mote_options_check(nullptr, h, &error_); }};
  }
  Calls<mote_session> session_calls() {
    return {[&](auto* h) { return mote_session_prefill(h, &id_, 1, nullptr, &error_); },
            [&](auto* h) { return mote_session_append(h, &id_, 1, &error_); },
            [&](auto* h) { return mote_session_append_text(h, "a", 1, 0, &error_); },
            [&](auto* h) {
              size_t count = 0;
              return mote_session_tokenize(h, "a", 1, 0, nullptr, 0, &count, &error_);
            },
            [&](auto* h) { return mote_session_append_messages(h, &conversation_, nullptr, &error_); },
            [&](auto* h) { return mote_session_set_tokens(h, &id_, 1, nullptr, &error_); },
            [&](auto* h) { return mote_session_logits(h, logits_.data(), &error_); },
            [&](auto* h) { return mote_session_decode(h, id_, nullptr, &error_); },
            [&](auto* h) { return mote_session_verify(h, &id_, 1, logits_.data(), &error_); },
            [&](auto* h) { return mote_session_score(h, &id_, 1, logits_.data(), &error_); },
            [&](auto* h) { return mote_session_get_info(h, &session_info_, &error_); },
            [&](auto* h) { return mote_session_reset(h, &error_); },
            [&](auto* h) { return mote_session_rewind(h, 0, &error_); },
            [&](auto* h) { return mote_session_move_to(h, "cpu", &error_); },
            [&](auto* h) { return mote_session_get_backend(h, &text_, nullptr, &error_); },
            [&](auto* h) { return mote_session_tokens(h, nullptr, 0, &count_, &error_); },
            [&](auto* h) { return mote_session_fork(h, &made_.session, &error_); },
            [&](auto* h) { return mote_session_save(h, "/nowhere/at/all", &error_); },
            [&](auto* h) { return mote_session_restore(h, "/nowhere/at/all", &error_); },
            [&](auto* h) { return mote_session_set_draft_model(h, nullptr, &error_); },
            [&](auto* h) { return mote_session_set_adapters(h, nullptr, nullptr, 0, &error_); },
            [&](auto* h) { return mote_session_check_golden(h, &text_, &error_); },
            [&](auto* h) { return mote_session_start_profile(h, &error_); },
            [&](auto* h) { return mote_session_stop_profile(h, &text_, &error_); },
            [&](auto* h) { return mote_session_set_value_sink(h, nullptr, nullptr, nullptr, &error_); },
            [&](auto* h) { return mote_session_beam_search(h, &id_, 1, nullptr, &made_.beams, &error_); },
            [&](auto* h) { return mote_generation_begin(h, &id_, 1, nullptr, &made_.generation, &error_); },
            [&](auto* h) {
              return h == nullptr ? MOTE_ERROR_INVALID_ARGUMENT
                                  : mote_batch_add(batch_, h, &id_, 1, nullptr, &sequence_, &error_);
            },
            [&](auto* h) { return mote_batch_add_fork(batch_, h, &id_, 1, nullptr, &sequence_, &error_); }};
  }
  Calls<mote_prefix_cache> cache_calls() {
    return {[&](auto* h) { return mote_prefix_cache_clear(h, &error_); },
            [&](auto* h) { return mote_prefix_cache_get_info(h, &cache_info_, &error_); },
            [&](auto* h) {
              return h == nullptr ? MOTE_ERROR_INVALID_ARGUMENT
                                  : mote_options_set_prefix_cache(GivenOptions(), h, &error_);
            }};
  }
  Calls<mote_generation> generation_calls() {
    return {[&](auto* h) { return mote_generation_next(h, &piece_, &error_); },
            [&](auto* h) { return mote_generation_statistics(h, &statistics_, &error_); }};
  }
  Calls<mote_batch> batch_calls() {
    return {[&](auto* h) { return mote_batch_add(h, nullptr, &id_, 1, nullptr, &sequence_, &error_); },
            [&](auto* h) { return mote_batch_add_fork(h, session_, &id_, 1, nullptr, &sequence_, &error_); },
            [&](auto* h) { return mote_batch_step(h, &count_, &error_); },
            [&](auto* h) { return mote_batch_piece(h, 0, &sequence_, &piece_, &error_); },
            [&](auto* h) { return mote_batch_statistics(h, 0, &statistics_, &error_); }};
  }
  Calls<mote_vocabulary> vocabulary_calls() {
    return {[&](auto* h) {
      auto options = sized<mote_grammar_options>();
      return mote_grammar_open(h, &options, &made_.grammar, &error_);
    }};
  }
  Calls<mote_grammar> grammar_calls() {
    return {[&](auto* h) { return mote_constraint_open(h, &made_.constraint, &error_); },
            [&](auto* h) {
              return h == nullptr ? MOTE_ERROR_INVALID_ARGUMENT : mote_options_set_grammar(GivenOptions(), h, &error_);
            }};
  }
  Calls<mote_constraint> constraint_calls() {
    return {[&](auto* h) { return mote_constraint_copy(h, &copy_, &error_); },
            [&](auto* h) { return mote_constraint_mask(h, &mask_, 1, &error_); },
            [&](auto* h) { return mote_constraint_accept(h, 0, &error_); },
            [&](auto* h) { return mote_constraint_get_info(h, &constraint_info_, &error_); }};
  }
  Calls<mote_chat_template> template_calls() {
    return {[&](auto* h) { return mote_chat_template_render(h, &conversation_, &made_.prompt, &error_); }};
  }
  Calls<mote_prompt> prompt_calls() {
    return {[&](auto* h) { return mote_prompt_text(h, &name_, nullptr, &error_); },
            [&](auto* h) { return mote_prompt_user_text(h, nullptr, 0, &count_, &error_); },
            [&](auto* h) { return mote_prompt_tokenize(model_, h, nullptr, 0, &count_, &error_); }};
  }
  Calls<mote_reply> reply_calls() {
    return {[&](auto* h) { return mote_reply_format(h, &name_, &error_); },
            [&](auto* h) { return mote_reply_push(h, "a", 1, &error_); },
            [&](auto* h) { return mote_reply_next_event(h, &event_, &error_); },
            [&](auto* h) { return mote_reply_message(h, &text_, &error_); },
            [&](auto* h) { return mote_reply_finish(h, &error_); }};
  }
  Calls<mote_beams> beams_calls() {
    return {[&](auto* h) { return mote_beams_get(h, 0, &ids_, &count_, nullptr, &error_); }};
  }

  Calls<mote_store> store_calls() {
    return {[&](auto* h) { return mote_store_folder(h, "org/first", &text_, &error_); },
            [&](auto* h) { return mote_store_list(h, nullptr, &made_.files, &error_); },
            [&](auto* h) { return mote_store_find(h, "org/first", &text_, &error_); },
            [&](auto* h) { return mote_store_remove(h, "org/first", nullptr, &error_); },
            [&](auto* h) { return mote_store_evict(h, 0, &made_.files, &error_); },
            [&](auto* h) { return mote_store_record(h, "/nowhere/at/all", "{}", &error_); },
            [&](auto* h) { return mote_download_begin(h, "org/second", nullptr, &made_.download, &error_); }};
  }
  Calls<mote_store_files> files_calls() {
    return {[&](auto* h) { return mote_store_files_get(h, 0, &file_info_, &error_); }};
  }
  Calls<mote_download> download_calls() {
    return {[&](auto* h) { return mote_download_get_info(h, &download_info_, &error_); },
            [&](auto* h) { return mote_download_next(h, &step_, &error_); },
            [&](auto* h) { return mote_download_respond(h, 200, nullptr, 0, &wants_body_, &error_); },
            [&](auto* h) { return mote_download_write(h, "a", 1, &error_); },
            [&](auto* h) { return mote_download_end(h, "the network is down", &error_); }};
  }

  Calls<mote_options> options_calls() {
    Calls<mote_options> calls{[&](auto* h) { return mote_options_set(h, "top_k", "3", &error_); },
                              [&](auto* h) { return mote_options_set(h, "top_k", nullptr, &error_); },
                              [&](auto* h) { return mote_options_set_json(h, "{}", 2, &error_); },
                              [&](auto* h) { return mote_options_set_grammar(h, nullptr, &error_); },
                              [&](auto* h) { return mote_options_set_prefix_cache(h, nullptr, &error_); },
                              [&](auto* h) { return mote_options_set_progress(h, nullptr, nullptr, &error_); },
                              [&](auto* h) { return mote_options_values(h, nullptr, &text_, &error_); }};
    // NULL stands for the defaults in these.
    for (const auto& call : calls_with_options())
      calls.push_back([call](auto* h) { return h == nullptr ? MOTE_ERROR_INVALID_ARGUMENT : call(h); });
    return calls;
  }
  Calls<mote_options> calls_with_options() {
    return {[&](auto* h) { return mote_options_check(h, model_, &error_); },
            [&](auto* h) { return mote_model_open(path_.c_str(), h, &made_.model, &error_); },
            [&](auto* h) { return mote_model_open_fd(0, 0, -1, h, &made_.model, &error_); },
            [&](auto* h) { return mote_model_open_memory("", 0, nullptr, nullptr, h, &made_.model, &error_); },
            [&](auto* h) { return mote_session_open(model_, h, &made_.session, &error_); },
            [&](auto* h) { return mote_batch_open(model_, 0, h, &made_.batch, &error_); },
            [&](auto* h) { return mote_batch_add(batch_, nullptr, &id_, 1, h, &sequence_, &error_); },
            [&](auto* h) { return mote_batch_add_fork(batch_, session_, &id_, 1, h, &sequence_, &error_); },
            [&](auto* h) { return mote_generation_begin(session_, &id_, 1, h, &made_.generation, &error_); },
            [&](auto* h) { return mote_session_beam_search(session_, &id_, 1, h, &made_.beams, &error_); },
            [&](auto* h) { return mote_chat_reply(chat_, session_, h, &made_.turn, &error_); },
            [&](auto* h) { return mote_chat_send(chat_, session_, "{}", 2, h, &made_.turn, &error_); },
            [&](auto* h) { return mote_chat_regenerate(chat_, session_, h, &made_.turn, &error_); },
            [&](auto* h) { return mote_chat_continue(chat_, session_, h, &made_.turn, &error_); },
            [&](auto* h) {
              return mote_sampling_probabilities(logits_.data(), 1, nullptr, 0, 0, h, logits_.data(), &error_);
            }};
  }

  void expect_refused(const Kind& each, void* handle, const char* reason) {
    for (size_t i = 0; i < each.calls.size(); ++i) {
      error_.message[0] = '\0';
      EXPECT_EQ(each.calls[i](handle), MOTE_ERROR_INVALID_ARGUMENT) << each.name << " call " << i;
      EXPECT_NE(std::strstr(error_.message, reason), nullptr) << each.name << " call " << i << ": " << error_.message;
    }
  }
  // Every call of `each` while a call on it runs, on the same thread or another.
  void expect_busy(const Kind& each, const char* reason) {
    for (size_t i = 0; i < each.calls.size(); ++i) {
      EXPECT_EQ(each.calls[i](each.handle), MOTE_ERROR_INVALID_STATE) << each.name << " call " << i;
      EXPECT_NE(std::strstr(error_.message, reason), nullptr) << each.name << " call " << i << ": " << error_.message;
    }
  }

  const int32_t id_ = 1;
  const std::string path_ = file_.path();
  mote_session* other_session_ = nullptr;
  mote_prefix_cache* cache_ = nullptr;
  mote_generation* generation_ = nullptr;
  mote_batch* batch_ = nullptr;
  mote_vocabulary* vocabulary_ = nullptr;
  mote_grammar* grammar_ = nullptr;
  mote_constraint* constraint_ = nullptr;
  mote_chat_template* template_ = nullptr;
  mote_prompt* prompt_ = nullptr;
  mote_reply* reply_ = nullptr;
  mote_beams* beams_ = nullptr;
  mote_options* options_ = nullptr;
  mote_chat* chat_ = nullptr;
  const std::string store_folder_ = path_ + ".store";
  mote_store* store_ = nullptr;
  mote_store_files* files_ = nullptr;
  mote_download* download_ = nullptr;
  mote_adapter* adapter_ = nullptr;  // what a refused call does not write

  // What refused calls do not write.
  struct {
    mote_model* model = nullptr;
    mote_session* session = nullptr;
    mote_generation* generation = nullptr;
    mote_batch* batch = nullptr;
    mote_vocabulary* vocabulary = nullptr;
    mote_grammar* grammar = nullptr;
    mote_constraint* constraint = nullptr;
    mote_prompt* prompt = nullptr;
    mote_reply* reply = nullptr;
    mote_beams* beams = nullptr;
    mote_chat_turn* turn = nullptr;
    mote_store_files* files = nullptr;
    mote_download* download = nullptr;
  } made_;
  mote_constraint* copy_ = nullptr;
  mote_model_info info_ = sized<mote_model_info>();
  mote_session_info session_info_ = sized<mote_session_info>();
  mote_prefix_cache_info cache_info_ = sized<mote_prefix_cache_info>();
  mote_constraint_info constraint_info_ = sized<mote_constraint_info>();
  mote_conversation conversation_ = sized<mote_conversation>();
  mote_piece piece_ = sized<mote_piece>();
  mote_statistics statistics_ = sized<mote_statistics>();
  mote_reply_event event_ = sized<mote_reply_event>();
  mote_store_file file_info_ = sized<mote_store_file>();
  mote_download_step step_ = sized<mote_download_step>();
  mote_download_info download_info_ = sized<mote_download_info>();
  int32_t wants_body_ = 0;
  std::vector<float> logits_ = std::vector<float>(19);
  char* text_ = nullptr;
  const char* name_ = nullptr;
  const int32_t* ids_ = nullptr;
  size_t count_ = 0;
  int64_t sequence_ = 0;
  uint32_t mask_ = 0;
};

}  // namespace mote
