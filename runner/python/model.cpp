#include "runner/python/bindings.h"

namespace mote::python {
namespace {

std::vector<int32_t> tokenize(const Model& model, const std::string& text, bool add_special, bool parse_special) {
  std::vector<int32_t> ids(text.size() + 16);
  size_t count = 0;
  const auto fill = [&, handle = model.handle()](mote_error* error) {
    return mote_tokenize(handle.get(), text.data(), text.size(), add_special, parse_special, ids.data(), ids.size(),
                         &count, error);
  };
  check_without_gil(fill);
  if (count > ids.size()) {  // normalisation can lengthen a text
    ids.resize(count);
    check_without_gil(fill);
  }
  ids.resize(count);
  return ids;
}

py::str detokenize(const Model& model, const std::vector<int32_t>& ids, bool skip_special) {
  char* text = nullptr;
  size_t text_bytes = 0;
  check([&](mote_error* error) {
    return mote_detokenize(model.handle().get(), ids.data(), ids.size(), skip_special, &text, &text_bytes, error);
  });
  const std::unique_ptr<char, Closer<mote_string_free>> owned(text);
  return py::str(text, text_bytes);
}

py::dict info(const Model& model) {
  const mote_model_info from = model.info();
  py::dict result;
  result["vocab_size"] = from.vocab_size;
  result["max_position_embeddings"] = from.max_position_embeddings;
  result["bos_token_id"] = from.bos_token_id < 0 ? py::object(py::none()) : py::object(py::int_(from.bos_token_id));
  result["has_tokenizer"] = from.has_tokenizer != 0;
  result["has_chat_template"] = from.has_chat_template != 0;
  result["file_bytes"] = from.file_bytes;
  result["weight_bytes"] = from.weight_bytes;
  return result;
}

void check_tokenizer(const py::bytes& json) {
  const auto text = static_cast<std::string_view>(json);
  check_without_gil([&](mote_error* error) { return mote_tokenizer_check(text.data(), text.size(), error); });
}

}  // namespace

Model::Model(const std::string& path, bool mmap, const std::string& backend) {
  auto options = sized<mote_model_options>();
  options.load_mode = mmap ? MOTE_LOAD_MAP : MOTE_LOAD_READ;
  options.backend = backend.c_str();
  mote_model* model = nullptr;
  check_without_gil([&](mote_error* error) { return mote_model_open(path.c_str(), &options, &model, error); });
  handle_.reset(model, &mote_model_close);
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
      .def(py::init<const std::string&, bool, const std::string&>(), py::arg("path"), py::arg("mmap") = true,
           py::arg("backend") = "auto")
      .def("close", &Model::close)
      .def("info", &info)
      .def("describe",
           [](const Model& model) {
             return take_string([&](char** text, mote_error* error) {
               return mote_model_describe(model.handle().get(), text, error);
             });
           })
      .def("chat_template",
           [](const Model& model) {
             return take_string([&](char** text, mote_error* error) {
               return mote_model_chat_template(model.handle().get(), text, error);
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
      .def("tokenize", &tokenize, py::arg("text"), py::arg("add_special_tokens"), py::arg("parse_special_tokens"))
      .def("detokenize", &detokenize, py::arg("ids"), py::arg("skip_special_tokens"));
  module.def("check_tokenizer", &check_tokenizer, py::arg("json"));
}

}  // namespace mote::python
