#include "runner/python/bindings.h"

namespace mote::python {

void raise(const mote_error& error) {
  const py::object exception = py::module_::import("llm_runner.errors")
                                   .attr("error_from_code")(static_cast<int>(error.code), py::str(error.message));
  PyErr_SetObject(py::type::of(exception).ptr(), exception.ptr());
  throw py::error_already_set();
}

void bind_errors(py::module_& module) {
  constexpr int kNumCodes = 1000;  // mote.h
  py::dict codes;
  for (int code = 0; code < kNumCodes; ++code) {
    if (const char* name = mote_error_name(static_cast<mote_error_code>(code))) codes[name] = code;
  }
  module.attr("ERROR_CODES") = codes;
}

}  // namespace mote::python
