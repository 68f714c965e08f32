#include "runner/python/bindings.h"

namespace mote::python {
namespace {

// sink: called with the name of a level of `logging` and a line; None: lines are printed on standard error again
void set_log_sink(const py::object& sink) {
  // It writes no line itself: there is nobody whom an error of the sink could reach.
  const auto call = [](void* callable, mote_log_level level, const char* text, size_t text_bytes) {
    if (Py_IsInitialized() == 0) return;
    const py::gil_scoped_acquire acquire;
    try {
      const py::str line(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(text_bytes), "replace"));
      const char* name = level == MOTE_LOG_ERROR ? "ERROR" : level == MOTE_LOG_INFO ? "INFO" : "DEBUG";
      (*static_cast<py::object*>(callable))(name, line);
    } catch (py::error_already_set& error) { error.discard_as_unraisable("a sink of log lines"); }
  };
  const auto release = [](void* callable) {
    if (Py_IsInitialized() == 0) return;
    const py::gil_scoped_acquire acquire;
    delete static_cast<py::object*>(callable);
  };
  if (sink.is_none())
    check_without_gil(
        [](mote_error* error) { return mote_set_log_sink(MOTE_LOG_OFF, nullptr, nullptr, nullptr, error); });
  else
    check_without_gil([&, owned = new py::object(sink)](mote_error* error) {
      return mote_set_log_sink(MOTE_LOG_DEBUG, call, owned, release, error);
    });
}

}  // namespace

void bind_log(py::module_& module) { module.def("set_log_sink", &set_log_sink); }

}  // namespace mote::python
