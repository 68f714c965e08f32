// A callable of Python that says, from within a call of the C API, whether that call is to end.
#pragma once

#include <optional>
#include <utility>

#include "runner/python/bindings.h"

namespace mote::python {

// Not copied: the C API holds a pointer to it meanwhile. Destroyed with the GIL held.
class Cancellation {
 public:
  // callable: None, or what returns something true once the call is to end
  explicit Cancellation(py::object callable) : callable_(std::move(callable)) {}
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  mote_is_cancelled function() const { return callable_.is_none() ? nullptr : &ask; }
  void* user_data() { return this; }

  // check_without_gil(call), of which comes what the callable raised.
  template <typename Call>
  void check_without_gil(Call call) {
    try {
      python::check_without_gil(std::move(call));
    } catch (const py::error_already_set&) {
      if (!raised_) throw;
      const py::error_already_set error = std::move(*raised_);
      raised_.reset();
      throw error;
    }
  }

 private:
  static int32_t ask(void* user_data) {
    auto& self = *static_cast<Cancellation*>(user_data);
    const py::gil_scoped_acquire acquire;
    try {
      return py::bool_(self.callable_()) ? 1 : 0;
    } catch (py::error_already_set& error) {
      self.raised_.emplace(std::move(error));
      return 1;
    }
  }

  py::object callable_;
  std::optional<py::error_already_set> raised_{};
};

}  // namespace mote::python
