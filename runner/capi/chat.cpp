#include "runner/capi/conversation.h"

using mote::Code;
using mote::Status;
using mote::capi::give;
using mote::capi::guarded;
using mote::capi::share;
using mote::capi::text_or_empty;

mote_error_code mote_chat_template_open(const char* source, size_t source_bytes, mote_chat_template** out,
                                        mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    if (source_bytes > 0) MOTE_REQUIRE_POINTER(source);
    MOTE_ASSIGN(auto parsed, mote::ChatTemplate::parse({source_bytes > 0 ? source : "", source_bytes}));
    return give(out, std::move(parsed));
  });
}

void mote_chat_template_close(mote_chat_template* chat_template) { mote::capi::close(chat_template); }

namespace mote::capi {

Result<TemplateInput> read_conversation(const mote_conversation& conversation) {
  mote_conversation given{};
  MOTE_RETURN_IF_ERROR(read_struct(&conversation, given));
  MOTE_REQUIRE(given.messages != nullptr, Code::kInvalidArgument, "conversation->messages is NULL");
  TemplateInput input;
  input.messages = text_or_empty(given.messages, given.messages_bytes);
  input.tools = text_or_empty(given.tools, given.tools_bytes);
  input.documents = text_or_empty(given.documents, given.documents_bytes);
  input.variables = text_or_empty(given.variables, given.variables_bytes);
  input.add_generation_prompt = given.add_generation_prompt != 0;
  input.continue_field = text_or_empty(given.continue_final_message);
  return input;
}

Result<Prompt> render_with_own(const Model& model, const mote_conversation& conversation) {
  MOTE_ASSIGN(const auto chat_template, chat_template_of(model));
  MOTE_ASSIGN(TemplateInput input, read_conversation(conversation));
  MOTE_ASSIGN(input.special_tokens, special_tokens_of(model));
  return chat_template->render(input);
}

}  // namespace mote::capi

mote_error_code mote_chat_template_render(const mote_chat_template* handle, const mote_conversation* conversation,
                                          mote_prompt** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto chat_template, share(handle));
    MOTE_REQUIRE_POINTER(conversation);
    MOTE_ASSIGN(const mote::TemplateInput input, mote::capi::read_conversation(*conversation));
    MOTE_ASSIGN(mote::Prompt prompt, chat_template->chat_template->render(input));
    return give(out, std::move(prompt));
  });
}

mote_error_code mote_model_render(const mote_model* handle, const mote_conversation* conversation, mote_prompt** out,
                                  mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto model, share(handle));
    MOTE_REQUIRE_POINTER(conversation);
    MOTE_ASSIGN(mote::Prompt prompt, mote::capi::render_with_own(*model->model, *conversation));
    return give(out, std::move(prompt));
  });
}

void mote_prompt_close(mote_prompt* prompt) { mote::capi::close(prompt); }

mote_error_code mote_prompt_text(const mote_prompt* handle, const char** text, size_t* text_bytes, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto prompt, share(handle));
    MOTE_REQUIRE_POINTER(text);
    *text = prompt->prompt.text.c_str();
    if (text_bytes != nullptr) *text_bytes = prompt->prompt.text.size();
    return {};
  });
}

mote_error_code mote_prompt_user_text(const mote_prompt* handle, size_t* pairs, size_t capacity, size_t* count,
                                      mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto prompt, share(handle));
    MOTE_REQUIRE_POINTER(count);
    *count = prompt->prompt.marked.size();
    if (capacity > 0) MOTE_REQUIRE_POINTER(pairs);
    for (size_t i = 0; i < std::min(capacity, *count); ++i) {
      pairs[2 * i] = prompt->prompt.marked[i].begin;
      pairs[2 * i + 1] = prompt->prompt.marked[i].end;
    }
    return {};
  });
}

mote_error_code mote_prompt_tokenize(const mote_model* handle, const mote_prompt* prompt_handle, int32_t* ids,
                                     size_t capacity, size_t* count, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto model, share(handle));
    MOTE_ASSIGN(const auto prompt, share(prompt_handle));
    MOTE_REQUIRE_POINTER(count);
    *count = 0;
    if (capacity > 0) MOTE_REQUIRE_POINTER(ids);
    MOTE_ASSIGN(const mote::Tokenizer* tokenizer, model->model->require_tokenizer());
    MOTE_ASSIGN(const std::vector<int32_t> encoded, encode_prompt(*tokenizer, prompt->prompt));
    *count = encoded.size();
    std::copy_n(encoded.begin(), std::min(capacity, encoded.size()), ids);
    return {};
  });
}
