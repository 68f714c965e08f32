#include "runner/python/bindings.h"

namespace mote::python {

void raise(const mote_error& error) {
  const py::object exception =
      py::module_::import("llm_runner.errors").attr("error_from_code")(error.code, py::str(error.message));
  PyErr_SetObject(py::type::of(exception).ptr(), exception.ptr());
  throw py::error_already_set();
}

}  // namespace mote::python
