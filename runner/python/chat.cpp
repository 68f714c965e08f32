#include "runner/python/bindings.h"

#include <optional>

namespace mote::python {
namespace {

using Prompt = std::unique_ptr<mote_prompt, Closer<mote_prompt_close>>;

class ChatTemplate {
 public:
  explicit ChatTemplate(const std::string& source) {
    mote_chat_template* opened = nullptr;
    check([&](mote_error* error) { return mote_chat_template_open(source.data(), source.size(), &opened, error); });
    handle_.reset(opened);
  }

  Prompt render(const mote_conversation& conversation) const {
    mote_prompt* rendered = nullptr;
    check_without_gil(
        [&](mote_error* error) { return mote_chat_template_render(handle_.get(), &conversation, &rendered, error); });
    return Prompt(rendered);
  }

 private:
  std::unique_ptr<mote_chat_template, Closer<mote_chat_template_close>> handle_;
};

// The prompt's text and the spans of bytes that came from the conversation.
py::tuple text_and_spans(const Prompt& prompt) {
  const char* text = nullptr;
  size_t text_bytes = 0;
  check([&](mote_error* error) { return mote_prompt_text(prompt.get(), &text, &text_bytes, error); });
  size_t count = 0;
  check([&](mote_error* error) { return mote_prompt_user_text(prompt.get(), nullptr, 0, &count, error); });
  std::vector<size_t> pairs(2 * count);
  check([&](mote_error* error) { return mote_prompt_user_text(prompt.get(), pairs.data(), count, &count, error); });
  py::list spans;
  for (size_t i = 0; i < count; ++i) spans.append(py::make_tuple(pairs[2 * i], pairs[2 * i + 1]));
  return py::make_tuple(py::str(text, text_bytes), spans);
}

std::vector<int32_t> prompt_ids(const Model& model, const Prompt& prompt) {
  const std::shared_ptr<mote_model> handle = model.handle();
  return all_ids(0, [&](int32_t* ids, size_t capacity, size_t* count) {
    check_without_gil([&](mote_error* error) {
      return mote_prompt_tokenize(handle.get(), prompt.get(), ids, capacity, count, error);
    });
  });
}

using OptionalText = std::optional<std::string>;

// Calls use(conversation) with the texts as the C API takes them.
template <typename Use>
auto with_conversation(const std::string& messages, const OptionalText& tools, const OptionalText& documents,
                       const OptionalText& variables, bool add_generation_prompt, const OptionalText& continue_field,
                       Use use) {
  const auto text_or_null = [](const OptionalText& text) { return text ? text->c_str() : nullptr; };
  auto conversation = sized<mote_conversation>();
  conversation.add_generation_prompt = add_generation_prompt;
  conversation.messages = messages.c_str();
  conversation.tools = text_or_null(tools);
  conversation.documents = text_or_null(documents);
  conversation.variables = text_or_null(variables);
  conversation.continue_final_message = text_or_null(continue_field);
  return use(conversation);
}

py::tuple render(const ChatTemplate& chat_template, const std::string& messages, const OptionalText& tools,
                 const OptionalText& documents, const OptionalText& variables, bool add_generation_prompt,
                 const OptionalText& continue_field) {
  return with_conversation(
      messages, tools, documents, variables, add_generation_prompt, continue_field,
      [&](const mote_conversation& conversation) { return text_and_spans(chat_template.render(conversation)); });
}

Prompt render_own(const Model& model, const mote_conversation& conversation) {
  mote_prompt* rendered = nullptr;
  check_without_gil([&, handle = model.handle()](mote_error* error) {
    return mote_model_render(handle.get(), &conversation, &rendered, error);
  });
  return Prompt(rendered);
}

// The text, the spans and the ids of a prompt. other_template: instead of the model's own, unless it is None.
py::tuple render_of_model(const Model& model, const ChatTemplate* other_template, const std::string& messages,
                          const OptionalText& tools, const OptionalText& documents, const OptionalText& variables,
                          bool add_generation_prompt, const OptionalText& continue_field, bool wants_ids) {
  const auto use = [&](const mote_conversation& conversation) {
    const Prompt prompt =
        other_template != nullptr ? other_template->render(conversation) : render_own(model, conversation);
    const py::tuple shown = text_and_spans(prompt);
    return py::make_tuple(shown[0], shown[1], wants_ids ? prompt_ids(model, prompt) : std::vector<int32_t>());
  };
  return with_conversation(messages, tools, documents, variables, add_generation_prompt, continue_field, use);
}

}  // namespace

void bind_chat(py::module_& module) {
  py::class_<ChatTemplate>(module, "ChatTemplate")
      .def(py::init<const std::string&>(), py::arg("source"))
      .def("render", &render, py::arg("messages"), py::arg("tools"), py::arg("documents"), py::arg("variables"),
           py::arg("add_generation_prompt"), py::arg("continue_field"));
  module.def("render_of_model", &render_of_model, py::arg("model"), py::arg("chat_template").none(true),
             py::arg("messages"), py::arg("tools"), py::arg("documents"), py::arg("variables"),
             py::arg("add_generation_prompt"), py::arg("continue_field"), py::arg("wants_ids"));
}

}  // namespace mote::python
