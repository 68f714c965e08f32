#include "runner/python/bindings.h"

namespace mote::python {

Options::Options(int32_t scopes, const std::string& json) {
  mote_options* opened = nullptr;
  check([&](mote_error* error) { return mote_options_open(scopes, &opened, error); });
  handle_.reset(opened);
  check([&](mote_error* error) { return mote_options_set_json(get(), json.data(), json.size(), error); });
}

void Options::set_grammar(const Grammar& grammar) {
  check([&](mote_error* error) { return mote_options_set_grammar(get(), grammar.get(), error); });
}

void Options::set_prefix_cache(const PrefixCache& cache) {
  check([&](mote_error* error) { return mote_options_set_prefix_cache(get(), cache.get(), error); });
}

void Options::set_progress(py::object callable) {
  progress_.callable = std::move(callable);
  check([&](mote_error* error) { return mote_options_set_progress(get(), call_progress, &progress_, error); });
}

int32_t Options::call_progress(void* user_data, double fraction) {
  auto& progress = *static_cast<Progress*>(user_data);
  const py::gil_scoped_acquire acquire;
  try {
    progress.callable(fraction);
    return 0;
  } catch (py::error_already_set& error) {
    progress.raised.emplace(std::move(error));
    return 1;
  }
}

void Options::raise_of_progress() {
  if (!progress_.raised) return;
  const py::error_already_set error = std::move(*progress_.raised);
  progress_.raised.reset();
  throw error;
}

void bind_options(py::module_& module) {
  py::class_<Options>(module, "Options")
      .def(py::init<int32_t, const std::string&>(), py::arg("scopes"), py::arg("json"))
      .def("set_grammar", &Options::set_grammar, py::arg("grammar"))
      .def("set_prefix_cache", &Options::set_prefix_cache, py::arg("cache"))
      .def("set_progress", &Options::set_progress, py::arg("callable"));
  py::dict scopes;
  scopes["generation"] = static_cast<int>(MOTE_SCOPE_GENERATION);
  scopes["beam_search"] = static_cast<int>(MOTE_SCOPE_BEAM_SEARCH);
  scopes["session"] = static_cast<int>(MOTE_SCOPE_SESSION);
  scopes["model"] = static_cast<int>(MOTE_SCOPE_MODEL);
  module.attr("SCOPES") = scopes;
  module.def("describe_options", [] {
    return take_string([](char** json, mote_error* error) { return mote_describe_options(json, error); });
  });
}

}  // namespace mote::python
