#include "runner/python/bindings.h"

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

  // The prompt's text and the spans of bytes that came from the conversation.
  py::tuple render(const std::string& messages, const std::optional<std::string>& tools, const std::optional<std::string>& documents,
                   const std::optional<std::string>& variables, bool add_generation_prompt,
                   const std::optional<std::string>& continue_field) const {
    const auto text_or_null = [](const std::optional<std::string>& text) { return text ? text->c_str() : nullptr; };
    auto conversation = sized<mote_conversation>();
    conversation.add_generation_prompt = add_generation_prompt;
    conversation.messages = messages.c_str();
    conversation.tools = text_or_null(tools);
    conversation.documents = text_or_null(documents);
    conversation.variables = text_or_null(variables);
    conversation.continue_final_message = text_or_null(continue_field);
    mote_prompt* rendered = nullptr;
    check_without_gil([&](mote_error* error) { return mote_chat_template_render(handle_.get(), &conversation, &rendered, error); });
    const Prompt prompt(rendered);
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

 private:
  std::unique_ptr<mote_chat_template, Closer<mote_chat_template_close>> handle_;
};

}  // namespace

void bind_chat(py::module_& module) {
  py::class_<ChatTemplate>(module, "ChatTemplate")
      .def(py::init<const std::string&>(), py::arg("source"))
      .def("render", &ChatTemplate::render, py::arg("messages"), py::arg("tools"), py::arg("documents"), py::arg("variables"),
           py::arg("add_generation_prompt"), py::arg("continue_field"));
}

}  // namespace mote::python
