#include "runner/python/bindings.h"

namespace mote::python {
namespace {

std::vector<int32_t> tokenize_text(const Model& model, const std::string& text, bool add_special, bool parse_special) {
  const std::shared_ptr<mote_model> handle = model.handle();
  return all_ids(most_ids(text.size()), [&](int32_t* ids, size_t capacity, size_t* count) {
    check_without_gil([&](mote_error* error) {
      return mote_tokenize(handle.get(), text.data(), text.size(), add_special, parse_special, ids, capacity, count,
                           error);
    });
  });
}

py::str detokenize(const Model& model, const std::vector<int32_t>& ids, bool skip_special) {
  return take_string([&](char** text, size_t* text_bytes, mote_error* error) {
    return mote_detokenize(model.handle().get(), ids.data(), ids.size(), skip_special, text, text_bytes, error);
  });
}

py::dict model_info(const Model& model) {
  const mote_model_info from = model.info();
  py::dict result;
  result["vocab_size"] = from.vocab_size;
  result["max_position_embeddings"] = from.max_position_embeddings;
  result["bos_token_id"] = from.bos_token_id < 0 ? py::object(py::none()) : py::object(py::int_(from.bos_token_id));
  result["has_tokenizer"] = from.has_tokenizer != 0;
  result["has_chat_template"] = from.has_chat_template != 0;
  result["file_bytes"] = from.file_bytes;
  result["weight_bytes"] = from.weight_bytes;
  result["generates"] = from.generates != 0;
  result["embeds"] = from.embeds != 0;
  return result;
}

void check_tokenizer(const py::bytes& json) {
  const auto text = static_cast<std::string_view>(json);
  check_without_gil([&](mote_error* error) { return mote_tokenizer_check(text.data(), text.size(), error); });
}

// A view of an object's bytes.
struct Exported {
  Py_buffer view{};

  // By any thread, with or without the GIL. At the end of the process the bytes stay.
  static void release(void* exported) {
    if (Py_IsInitialized() == 0) return;
    const py::gil_scoped_acquire acquire;
    const std::unique_ptr<Exported> owned(static_cast<Exported*>(exported));
    PyBuffer_Release(&owned->view);
  }
};

}  // namespace

// call(options, model, error)
template <typename Call>
Model Model::opened(Options& options, const Call& call) {
  mote_model* model = nullptr;
  try {
    check_without_gil([&](mote_error* error) { return call(options.get(), &model, error); });
  } catch (const py::error_already_set&) {
    options.raise_of_progress();
    throw;
  }
  return Model(model);
}

Model Model::open(const std::string& path, Options& options) {
  return opened(options, [&](auto... rest) { return mote_model_open(path.c_str(), rest...); });
}

Model Model::open_fd(int fd, int64_t offset, int64_t length, Options& options) {
  return opened(options, [&](auto... rest) { return mote_model_open_fd(fd, offset, length, rest...); });
}

Model Model::open_memory(const py::buffer& bytes, Options& options) {
  auto exported = std::make_unique<Exported>();
  if (PyObject_GetBuffer(bytes.ptr(), &exported->view, PyBUF_SIMPLE) != 0) throw py::error_already_set();
  const void* data = exported->view.buf;
  const auto size = static_cast<size_t>(exported->view.len);
  return opened(options, [&](auto... rest) {
    return mote_model_open_memory(data, size, Exported::release, exported.release(), rest...);
  });
}

std::shared_ptr<mote_model> Model::handle() const {
  if (handle_ == nullptr) {
    auto error = sized<mote_error>();
    error.code = MOTE_ERROR_INVALID_ARGUMENT;
    std::snprintf(error.message, sizeof error.message, "the model is closed");
    raise(error);
  }
  return handle_;
}

mote_model_info Model::info() const {
  auto result = sized<mote_model_info>();
  check([&](mote_error* error) { return mote_model_get_info(handle().get(), &result, error); });
  return result;
}

void bind_model(py::module_& module) {
  py::class_<Model>(module, "Model")
      .def_static("open", &Model::open)
      .def_static("open_fd", &Model::open_fd)
      .def_static("open_memory", &Model::open_memory)
      .def("close", &Model::close)
      .def("info", &model_info)
      .def("describe",
           [](const Model& model) {
             return take_string([&](char** text, mote_error* error) {
               return mote_model_describe(model.handle().get(), text, error);
             });
           })
      .def("chat_template",
           [](const Model& model) {
             return take_string([&](char** text, size_t* text_bytes, mote_error* error) {
               return mote_model_chat_template(model.handle().get(), text, text_bytes, error);
             });
           })
      .def("generation_config",
           [](const Model& model) {
             return take_string([&](char** text, mote_error* error) {
               return mote_model_generation_config(model.handle().get(), text, error);
             });
           })
      .def("check_segments",
           [](const Model& model) {
             check_without_gil([handle = model.handle()](mote_error* error) {
               return mote_model_check_segments(handle.get(), error);
             });
           })
      .def("tokenize", &tokenize_text, py::arg("text"), py::arg("add_special_tokens"), py::arg("parse_special_tokens"))
      .def("detokenize", &detokenize, py::arg("ids"), py::arg("skip_special_tokens"));
  module.def("check_tokenizer", &check_tokenizer, py::arg("json"));
}

}  // namespace mote::python
