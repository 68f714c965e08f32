#include "runner/python/bindings.h"

namespace mote::python {
namespace {

// A piece of a step, or the error that its sequence ended with.
struct StepPiece {
  int64_t sequence = -1;
  PieceCopy copy;
  mote_error error = sized<mote_error>();
  mote_statistics statistics = sized<mote_statistics>();
  bool is_last = false;
};

py::object exception_of(const mote_error& error) {
  if (error.code == MOTE_OK) return py::none();
  return py::module_::import("llm_runner.errors")
      .attr("error_from_code")(static_cast<int>(error.code), py::str(error.message));
}

// Steps take turns; add and cancel come at any time.
class Batch {
 public:
  Batch(const Model& model, int32_t max_sequences, const Options& options) {
    mote_batch* batch = nullptr;
    check_without_gil([&, handle = model.handle()](mote_error* error) {
      return mote_batch_open(handle.get(), max_sequences, options.get(), &batch, error);
    });
    handle_.reset(batch, &mote_batch_close);
  }

  int64_t add(const std::shared_ptr<Session>& session, bool fork, const std::vector<int32_t>& ids,
              const Options& options) {
    int64_t sequence = -1;
    const std::shared_ptr<mote_session> own = session == nullptr ? nullptr : session->handle();
    check_without_gil([&](mote_error* error) {
      const auto lock = session == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(session->mutex());
      if (fork)
        return mote_batch_add_fork(handle_.get(), own.get(), ids.data(), ids.size(), options.get(), &sequence, error);
      return mote_batch_add(handle_.get(), own.get(), ids.data(), ids.size(), options.get(), &sequence, error);
    });
    return sequence;
  }

  mote_batch* get() const { return handle_.get(); }

  void cancel(int64_t sequence) { mote_batch_cancel(handle_.get(), sequence); }
  int64_t num_sequences() const { return mote_batch_num_sequences(handle_.get()); }

  // [(sequence, piece or None, exception or None, statistics of a last piece or None), ...]
  py::list step() {
    std::vector<StepPiece> pieces;
    check_without_gil([&](mote_error* error) {
      const std::lock_guard lock(mutex_);
      size_t count = 0;
      const mote_error_code code = mote_batch_step(handle_.get(), &count, error);
      pieces.resize(count);
      for (size_t i = 0; i < count; ++i) take(i, pieces[i]);
      return code;
    });
    py::list result;
    for (const StepPiece& piece : pieces) {
      const bool failed = piece.error.code != MOTE_OK;
      const py::object text = failed ? py::object(py::none()) : py::object(piece.copy.tuple());
      const py::object statistics =
          piece.is_last ? py::object(statistics_dict(piece.statistics)) : py::object(py::none());
      result.append(py::make_tuple(piece.sequence, text, exception_of(piece.error), statistics));
    }
    return result;
  }

 private:
  void take(size_t index, StepPiece& piece) {
    if (mote_batch_piece(handle_.get(), index, &piece.sequence, &piece.copy.piece, &piece.error) == MOTE_OK)
      piece.copy.keep();
    piece.is_last = mote_batch_statistics(handle_.get(), index, &piece.statistics, nullptr) == MOTE_OK;
  }

  std::shared_ptr<mote_batch> handle_;
  std::mutex mutex_;
};

void set_batch(Session& session, const Batch* batch) {
  check_without_gil([&, handle = session.handle()](mote_error* error) {
    const std::lock_guard lock(session.mutex());
    return mote_session_set_batch(handle.get(), batch == nullptr ? nullptr : batch->get(), error);
  });
}

}  // namespace

void bind_batch(py::module_& module) {
  py::class_<Batch>(module, "Batch")
      .def(py::init<const Model&, int32_t, const Options&>(), py::arg("model"), py::arg("max_sequences"),
           py::arg("options"))
      .def("add", &Batch::add, py::arg("session"), py::arg("fork"), py::arg("ids"), py::arg("options"))
      .def("cancel", &Batch::cancel, py::arg("sequence"))
      .def("num_sequences", &Batch::num_sequences)
      .def("step", &Batch::step);
  module.def("set_batch", &set_batch, py::arg("session"), py::arg("batch").none(true));
}

}  // namespace mote::python
