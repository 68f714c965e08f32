#include <optional>

#include "runner/python/bindings.h"

namespace mote::python {
namespace {

using OptionalText = std::optional<std::string>;

class Reply {
 public:
  Reply(const OptionalText& format, const std::string& chat_template, const std::string& prompt,
        const OptionalText& tools) {
    auto options = sized<mote_reply_options>();
    options.format = format ? format->c_str() : nullptr;
    options.chat_template = chat_template.c_str();
    options.chat_template_bytes = chat_template.size();
    options.prompt = prompt.c_str();
    options.prompt_bytes = prompt.size();
    options.tools = tools ? tools->c_str() : nullptr;
    mote_reply* opened = nullptr;
    check([&](mote_error* error) { return mote_reply_open(&options, &opened, error); });
    handle_.reset(opened);
  }

  py::str format() const {
    const char* name = nullptr;
    check([&](mote_error* error) { return mote_reply_format(handle_.get(), &name, error); });
    return py::str(name);
  }

  py::list push(const std::string& text) {
    check([&](mote_error* error) { return mote_reply_push(handle_.get(), text.data(), text.size(), error); });
    return take_events();
  }

  py::list finish() {
    check([&](mote_error* error) { return mote_reply_finish(handle_.get(), error); });
    return take_events();
  }

  py::str message() const {
    return take_string([&](char** json, mote_error* error) { return mote_reply_message(handle_.get(), json, error); });
  }

 private:
  // (kind, call_index, text, id)
  py::list take_events() {
    py::list events;
    auto event = sized<mote_reply_event>();
    while (true) {
      check([&](mote_error* error) { return mote_reply_next_event(handle_.get(), &event, error); });
      if (event.kind == MOTE_REPLY_NONE) return events;
      events.append(py::make_tuple(static_cast<int>(event.kind), event.call_index,
                                   py::str(event.text, event.text_bytes), py::str(event.id)));
    }
  }

  std::unique_ptr<mote_reply, Closer<mote_reply_close>> handle_;
};

}  // namespace

void bind_reply(py::module_& module) {
  py::class_<Reply>(module, "Reply")
      .def(py::init<const OptionalText&, const std::string&, const std::string&, const OptionalText&>(),
           py::arg("format"), py::arg("chat_template"), py::arg("prompt"), py::arg("tools"))
      .def("format", &Reply::format)
      .def("push", &Reply::push, py::arg("text"))
      .def("finish", &Reply::finish)
      .def("message", &Reply::message);
  module.def("reply_formats", [] {
    return take_string([](char** json, mote_error* error) { return mote_reply_formats(json, error); });
  });
}

}  // namespace mote::python
