#include "runner/python/bindings.h"

namespace mote::python {
namespace {

class Generation {
 public:
  Generation(std::shared_ptr<Session> session, const std::vector<int32_t>& ids, const Options& options)
      : session_(std::move(session)) {
    mote_generation* handle = nullptr;
    check_without_gil([&, session_handle = session_->handle()](mote_error* error) {
      const std::lock_guard lock(session_->mutex());
      return mote_generation_begin(session_handle.get(), ids.data(), ids.size(), options.get(), &handle, error);
    });
    handle_.reset(handle);
  }

  py::tuple next() {
    PieceCopy copy;
    check_without_gil([&](mote_error* error) {
      const std::lock_guard lock(session_->mutex());
      const mote_error_code code = mote_generation_next(handle_.get(), &copy.piece, error);
      if (code == MOTE_OK) copy.keep();
      return code;
    });
    return copy.tuple();
  }

  void cancel() { mote_generation_cancel(handle_.get()); }

  py::dict statistics() {
    auto from = sized<mote_statistics>();
    check_without_gil([&](mote_error* error) {
      const std::lock_guard lock(session_->mutex());
      return mote_generation_statistics(handle_.get(), &from, error);
    });
    return statistics_dict(from);
  }

 private:
  std::shared_ptr<Session> session_;
  std::unique_ptr<mote_generation, Closer<mote_generation_end>> handle_;
};

py::array_t<float> warp(const py::array_t<float, py::array::c_style | py::array::forcecast>& logits,
                        const std::vector<int32_t>& previous_ids, size_t num_generated, const Options& options) {
  py::array_t<float> result(logits.size());
  check([&](mote_error* error) {
    return mote_sampling_probabilities(logits.data(), static_cast<size_t>(logits.size()), previous_ids.data(),
                                       previous_ids.size(), num_generated, options.get(), result.mutable_data(), error);
  });
  return result;
}

}  // namespace

py::object finish_reason_object(mote_finish_reason reason) {
  const char* name = mote_finish_reason_name(reason);
  return name == nullptr ? py::object(py::none()) : py::object(py::str(name));
}

void PieceCopy::keep() {
  text_.assign(piece.text, piece.text_bytes);
  for (size_t i = 0; i < piece.num_top_logprobs; ++i)
    top_logprobs_.emplace_back(piece.top_logprobs[i].id, piece.top_logprobs[i].logprob);
}

py::tuple PieceCopy::tuple() const {
  const py::object id = piece.id < 0 ? py::object(py::none()) : py::object(py::int_(piece.id));
  return py::make_tuple(py::str(text_.data(), text_.size()), id, finish_reason_object(piece.finish_reason),
                        piece.logprob, top_logprobs_);
}

py::dict statistics_dict(const mote_statistics& statistics) {
  py::dict result;
  result["prompt_tokens"] = statistics.prompt_tokens;
  result["generated_tokens"] = statistics.generated_tokens;
  result["forced_tokens"] = statistics.forced_tokens;
  result["prefill_seconds"] = statistics.prefill_seconds;
  result["decode_seconds"] = statistics.decode_seconds;
  result["time_to_first_token_seconds"] = statistics.time_to_first_token_seconds;
  result["peak_rss_bytes"] = statistics.peak_rss_bytes;
  result["peak_private_bytes"] = statistics.peak_private_bytes;
  result["proposed_tokens"] = statistics.proposed_tokens;
  result["accepted_tokens"] = statistics.accepted_tokens;
  result["num_drafts"] = statistics.num_drafts;
  result["mean_run_length"] = statistics.mean_run_length;
  result["speculative_speed_up"] = statistics.speculative_speed_up;
  const char* reason = statistics.speculative_off_reason;
  result["speculative_off_reason"] = reason == nullptr ? py::object(py::none()) : py::object(py::str(reason));
  return result;
}

void bind_generation(py::module_& module) {
  py::class_<Generation>(module, "Generation")
      .def(py::init<std::shared_ptr<Session>, const std::vector<int32_t>&, const Options&>(), py::arg("session"),
           py::arg("ids"), py::arg("options"))
      .def("next", &Generation::next)
      .def("cancel", &Generation::cancel)
      .def("statistics", &Generation::statistics);
  module.def("warp", &warp, py::arg("logits"), py::arg("previous_ids"), py::arg("num_generated"), py::arg("options"));
}

}  // namespace mote::python
