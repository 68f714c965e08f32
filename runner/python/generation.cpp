#include "runner/python/bindings.h"

namespace mote::python {
namespace {

// Options by their names in mote_generation_options; the rest as the model says.
mote_generation_options read_options(const mote_generation_options& defaults, const py::dict& given) {
  mote_generation_options options = defaults;
  const auto read = [&](const char* name, auto& field) {
    if (given.contains(name)) field = given[name].cast<std::remove_reference_t<decltype(field)>>();
  };
  read("max_new_tokens", options.max_new_tokens);
  read("do_sample", options.do_sample);
  read("temperature", options.temperature);
  read("top_k", options.top_k);
  read("top_p", options.top_p);
  read("min_p", options.min_p);
  read("repetition_penalty", options.repetition_penalty);
  read("seed", options.seed);
  read("ignore_eos", options.ignore_eos);
  read("skip_special_tokens", options.skip_special_tokens);
  read("skip_eos", options.skip_eos);
  return options;
}

class Generation {
 public:
  Generation(const Model& model, std::shared_ptr<Session> session, const std::vector<int32_t>& ids, const py::dict& given,
             const std::vector<std::string>& stop_strings)
      : session_(std::move(session)) {
    auto defaults = sized<mote_generation_options>();
    check([&](mote_error* error) { return mote_generation_options_default(model.handle().get(), &defaults, error); });
    mote_generation_options options = read_options(defaults, given);
    std::vector<const char*> stops;
    for (const std::string& text : stop_strings) stops.push_back(text.c_str());
    options.stop_strings = stops.data();
    options.num_stop_strings = stops.size();
    mote_generation* handle = nullptr;
    check_without_gil([&, session_handle = session_->handle()](mote_error* error) {
      const std::lock_guard lock(session_->mutex());
      return mote_generation_begin(session_handle.get(), ids.data(), ids.size(), &options, &handle, error);
    });
    handle_.reset(handle);
  }

  // (text, id or None, finish_reason or None)
  py::tuple next() {
    auto piece = sized<mote_piece>();
    std::string text;
    check_without_gil([&](mote_error* error) {
      const std::lock_guard lock(session_->mutex());
      const int32_t code = mote_generation_next(handle_.get(), &piece, error);
      if (code == MOTE_OK) text.assign(piece.text, piece.text_bytes);
      return code;
    });
    static constexpr const char* kReasons[] = {"eos", "length", "stop_string", "cancelled"};
    const py::object id = piece.id < 0 ? py::object(py::none()) : py::object(py::int_(piece.id));
    const py::object reason = piece.finished == 0 ? py::object(py::none()) : py::object(py::str(kReasons[piece.finish_reason]));
    return py::make_tuple(py::str(text.data(), text.size()), id, reason);
  }

  py::dict statistics() {
    auto from = sized<mote_statistics>();
    check_without_gil([&](mote_error* error) {
      const std::lock_guard lock(session_->mutex());
      return mote_generation_statistics(handle_.get(), &from, error);
    });
    py::dict result;
    result["prompt_tokens"] = from.prompt_tokens;
    result["generated_tokens"] = from.generated_tokens;
    result["prefill_seconds"] = from.prefill_seconds;
    result["decode_seconds"] = from.decode_seconds;
    result["time_to_first_token_seconds"] = from.time_to_first_token_seconds;
    result["peak_rss_bytes"] = from.peak_rss_bytes;
    result["peak_private_bytes"] = from.peak_private_bytes;
    return result;
  }

 private:
  std::shared_ptr<Session> session_;
  std::unique_ptr<mote_generation, Closer<mote_generation_end>> handle_;
};

py::array_t<float> warp(const py::array_t<float, py::array::c_style | py::array::forcecast>& logits,
                        const std::vector<int32_t>& previous_ids, const py::dict& given) {
  auto defaults = sized<mote_generation_options>();
  defaults.do_sample = 1;
  defaults.temperature = defaults.top_p = defaults.repetition_penalty = 1.0f;
  const mote_generation_options options = read_options(defaults, given);
  py::array_t<float> result(logits.size());
  check([&](mote_error* error) {
    return mote_sampling_probabilities(logits.data(), static_cast<size_t>(logits.size()), previous_ids.data(), previous_ids.size(),
                                       &options, result.mutable_data(), error);
  });
  return result;
}

}  // namespace

void bind_generation(py::module_& module) {
  py::class_<Generation>(module, "Generation")
      .def(py::init<const Model&, std::shared_ptr<Session>, const std::vector<int32_t>&, const py::dict&,
                    const std::vector<std::string>&>(),
           py::arg("model"), py::arg("session"), py::arg("ids"), py::arg("options"), py::arg("stop_strings"))
      .def("next", &Generation::next)
      .def("statistics", &Generation::statistics);
  module.def("warp", &warp, py::arg("logits"), py::arg("previous_ids"), py::arg("options"));
}

}  // namespace mote::python
