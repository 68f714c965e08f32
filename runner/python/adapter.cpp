#include "runner/python/bindings.h"

namespace mote::python {
namespace {

using Mix = std::vector<std::pair<std::shared_ptr<Adapter>, float>>;

void set_adapters(Session& session, const Mix& mix) {
  std::vector<const mote_adapter*> adapters;
  std::vector<float> weights;
  for (const auto& [adapter, weight] : mix) {
    adapters.push_back(adapter->get());
    weights.push_back(weight);
  }
  check_without_gil([&, handle = session.handle()](mote_error* error) {
    const std::lock_guard lock(session.mutex());
    return mote_session_set_adapters(handle.get(), adapters.data(), weights.data(), adapters.size(), error);
  });
}

}  // namespace

Adapter::Adapter(const Model& model, const std::string& text) {
  mote_adapter* adapter = nullptr;
  check_without_gil([&, handle = model.handle()](mote_error* error) {
    return mote_adapter_open(handle.get(), text.c_str(), &weight_, &adapter, error);
  });
  handle_.reset(adapter);
}

py::str Adapter::describe() const {
  return take_string([&](char** text, mote_error* error) { return mote_adapter_describe(get(), text, error); });
}

void bind_adapter(py::module_& module) {
  py::class_<Adapter, std::shared_ptr<Adapter>>(module, "Adapter")
      .def(py::init<const Model&, const std::string&>(), py::arg("model"), py::arg("text"))
      .def("weight", &Adapter::weight)
      .def("describe", &Adapter::describe);
  module.def("set_adapters", &set_adapters, py::arg("session"), py::arg("mix"));
}

}  // namespace mote::python
