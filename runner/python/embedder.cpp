#include <variant>

#include "runner/python/bindings.h"

namespace mote::python {
namespace {

// A text, or token ids.
using Input = std::variant<py::bytes, std::vector<int32_t>>;

// Calls on an embedder take turns.
class Embedder {
 public:
  Embedder(const Model& model, const Options& options) {
    mote_embedder* embedder = nullptr;
    check_without_gil([&, handle = model.handle()](mote_error* error) {
      return mote_embedder_open(handle.get(), options.get(), &embedder, error);
    });
    handle_.reset(embedder, &mote_embedder_close);
  }

  // Errors: raises ArgumentError if the embedder is closed.
  std::shared_ptr<mote_embedder> handle() const {
    if (handle_ != nullptr) return handle_;
    auto error = sized<mote_error>();
    error.code = MOTE_ERROR_INVALID_ARGUMENT;
    std::snprintf(error.message, sizeof error.message, "the embedder is closed");
    raise(error);
  }
  void close() { handle_.reset(); }
  std::mutex& mutex() { return mutex_; }

 private:
  std::shared_ptr<mote_embedder> handle_;
  std::mutex mutex_;
};

std::vector<mote_embed_input> inputs_of(const std::vector<Input>& from) {
  std::vector<mote_embed_input> inputs;
  for (const Input& each : from) {
    mote_embed_input input{};
    if (const auto* text = std::get_if<py::bytes>(&each)) {
      const auto view = static_cast<std::string_view>(*text);
      input.text = view.data();
      input.text_bytes = view.size();
    } else {
      const auto& ids = std::get<std::vector<int32_t>>(each);
      input.ids = ids.data();
      input.num_ids = ids.size();
    }
    inputs.push_back(input);
  }
  return inputs;
}

// -> (float32 [inputs, dimensions], the number of tokens of each)
py::tuple embed(Embedder& embedder, const std::vector<Input>& from, const std::optional<std::string>& prompt_name,
                const std::optional<std::string>& prompt, int32_t dimensions, bool normalize, bool truncate,
                bool parse_special) {
  const std::shared_ptr<mote_embedder> handle = embedder.handle();
  auto options = sized<mote_embed_options>();
  options.dimensions = dimensions;
  options.prompt_name = prompt_name.has_value() ? prompt_name->c_str() : nullptr;
  options.prompt = prompt.has_value() ? prompt->c_str() : nullptr;
  options.prompt_bytes = prompt.has_value() ? prompt->size() : 0;
  options.keep_length = normalize ? 0 : 1;
  options.refuse_long = truncate ? 0 : 1;
  options.plain_text = parse_special ? 0 : 1;
  size_t width = 0;
  check([&](mote_error* error) { return mote_embedder_dimensions(handle.get(), &options, &width, error); });
  const std::vector<mote_embed_input> inputs = inputs_of(from);
  py::array_t<float> vectors({static_cast<py::ssize_t>(inputs.size()), static_cast<py::ssize_t>(width)});
  std::vector<int64_t> num_tokens(inputs.size());
  float* data = vectors.mutable_data();
  check_without_gil([&](mote_error* error) {
    const std::lock_guard lock(embedder.mutex());
    return mote_embedder_embed(handle.get(), inputs.data(), inputs.size(), &options, data, num_tokens.data(), error);
  });
  return py::make_tuple(vectors, num_tokens);
}

}  // namespace

void bind_embedder(py::module_& module) {
  py::class_<Embedder>(module, "Embedder")
      .def(py::init<const Model&, const Options&>(), py::arg("model"), py::arg("options"))
      .def("close", &Embedder::close)
      .def("embed", &embed, py::arg("inputs"), py::arg("prompt_name").none(true), py::arg("prompt").none(true),
           py::arg("dimensions"), py::arg("normalize"), py::arg("truncate"), py::arg("parse_special"))
      .def("cancel", [](const Embedder& embedder) { mote_embedder_cancel(embedder.handle().get()); })
      .def("check_golden", [](Embedder& embedder) {
        char* text = nullptr;
        check_without_gil([&, handle = embedder.handle()](mote_error* error) {
          const std::lock_guard lock(embedder.mutex());
          return mote_embedder_check_golden(handle.get(), &text, error);
        });
        const std::unique_ptr<char, Closer<mote_string_free>> owned(text);
        return py::str(text);
      });
  module.def("embedding_config", [](const Model& model) {
    return take_string(
        [&](char** json, mote_error* error) { return mote_model_embedding_config(model.handle().get(), json, error); });
  });
}

}  // namespace mote::python
