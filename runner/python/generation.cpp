#include "runner/capi/sampling_scalars.h"
#include "runner/python/bindings.h"

namespace mote::python {
namespace {

// Options by their names in mote_generation_options, and the lists that they point to. Not copied: it points into
// itself.
class Options {
 public:
  Options(const mote_generation_options& defaults, const py::dict& given) : options_(defaults) {
    const auto read = [&](const char* name, auto& field) {
      if (given.contains(name)) field = given[name].cast<std::remove_reference_t<decltype(field)>>();
    };
#define MOTE_READ(name) read(#name, options_.name);
    MOTE_SAMPLING_SCALARS(MOTE_READ)
    MOTE_READ(max_new_tokens)
    MOTE_READ(do_sample)
    MOTE_READ(logprobs)
    MOTE_READ(top_logprobs)
    MOTE_READ(max_time) MOTE_READ(speculative) MOTE_READ(draft_tokens) MOTE_READ(ignore_eos)
        MOTE_READ(skip_special_tokens) MOTE_READ(skip_eos)
#undef MOTE_READ
            read("dry_sequence_breakers", breakers_);
    read("sequence_bias", sequences_);
    read("stop_token_ids", stop_ids_);
    if (given.contains("grammar")) options_.grammar = given["grammar"].cast<const Grammar&>().get();
    for (const auto& [ids, bias] : sequences_) biases_.push_back({ids.data(), ids.size(), bias});
    options_.dry_sequence_breakers = breakers_.data();
    options_.num_dry_sequence_breakers = breakers_.size();
    options_.stop_token_ids = stop_ids_.data();
    options_.num_stop_token_ids = stop_ids_.size();
    options_.sequence_bias = biases_.data();
    options_.num_sequence_bias = biases_.size();
  }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  void set_stop_strings(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) stops_.push_back(text.c_str());
    options_.stop_strings = stops_.data();
    options_.num_stop_strings = stops_.size();
  }

  const mote_generation_options* get() const { return &options_; }

 private:
  mote_generation_options options_;
  std::vector<int32_t> breakers_;
  std::vector<int32_t> stop_ids_;
  std::vector<std::pair<std::vector<int32_t>, float>> sequences_;
  std::vector<mote_sequence_bias> biases_;
  std::vector<const char*> stops_;
};

class Generation {
 public:
  Generation(const Model& model, std::shared_ptr<Session> session, const std::vector<int32_t>& ids,
             const py::dict& given, const std::vector<std::string>& stop_strings)
      : session_(std::move(session)) {
    mote_generation* handle = nullptr;
    with_generation_options(model, given, stop_strings, [&](const mote_generation_options* options) {
      check_without_gil([&, session_handle = session_->handle()](mote_error* error) {
        const std::lock_guard lock(session_->mutex());
        return mote_generation_begin(session_handle.get(), ids.data(), ids.size(), options, &handle, error);
      });
    });
    handle_.reset(handle);
  }

  py::tuple next() {
    PieceCopy copy;
    check_without_gil([&](mote_error* error) {
      const std::lock_guard lock(session_->mutex());
      const int32_t code = mote_generation_next(handle_.get(), &copy.piece, error);
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
                        const std::vector<int32_t>& previous_ids, size_t num_generated, const py::dict& given) {
  auto defaults = sized<mote_generation_options>();
  check([&](mote_error* error) { return mote_generation_options_neutral(&defaults, error); });
  const Options options(defaults, given);
  py::array_t<float> result(logits.size());
  check([&](mote_error* error) {
    return mote_sampling_probabilities(logits.data(), static_cast<size_t>(logits.size()), previous_ids.data(),
                                       previous_ids.size(), num_generated, options.get(), result.mutable_data(), error);
  });
  return result;
}

}  // namespace

void with_generation_options(const Model& model, const py::dict& given, const std::vector<std::string>& stop_strings,
                             const std::function<void(const mote_generation_options*)>& body) {
  auto defaults = sized<mote_generation_options>();
  check([&](mote_error* error) { return mote_generation_options_default(model.handle().get(), &defaults, error); });
  Options options(defaults, given);
  options.set_stop_strings(stop_strings);
  body(options.get());
}

void PieceCopy::keep() {
  text_.assign(piece.text, piece.text_bytes);
  for (size_t i = 0; i < piece.num_top_logprobs; ++i)
    top_logprobs_.emplace_back(piece.top_logprobs[i].id, piece.top_logprobs[i].logprob);
}

py::tuple PieceCopy::tuple() const {
  static constexpr const char* kReasons[] = {"eos", "length", "stop_string", "cancelled", "stop_token", "time"};
  const py::object id = piece.id < 0 ? py::object(py::none()) : py::object(py::int_(piece.id));
  const py::object reason =
      piece.finished == 0 ? py::object(py::none()) : py::object(py::str(kReasons[piece.finish_reason]));
  return py::make_tuple(py::str(text_.data(), text_.size()), id, reason, piece.logprob, top_logprobs_);
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
      .def(py::init<const Model&, std::shared_ptr<Session>, const std::vector<int32_t>&, const py::dict&,
                    const std::vector<std::string>&>(),
           py::arg("model"), py::arg("session"), py::arg("ids"), py::arg("options"), py::arg("stop_strings"))
      .def("next", &Generation::next)
      .def("cancel", &Generation::cancel)
      .def("statistics", &Generation::statistics);
  module.def("warp", &warp, py::arg("logits"), py::arg("previous_ids"), py::arg("num_generated"), py::arg("options"));
}

}  // namespace mote::python
