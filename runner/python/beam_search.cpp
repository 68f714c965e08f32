#include "runner/python/bindings.h"

namespace mote::python {
namespace {

// [(ids, score), ...], the best first.
py::list beam_search(Session& session, const std::vector<int32_t>& ids, const Options& options) {
  mote_beams* found = nullptr;
  check_without_gil([&, handle = session.handle()](mote_error* error) {
    const std::lock_guard lock(session.mutex());
    return mote_session_beam_search(handle.get(), ids.data(), ids.size(), options.get(), &found, error);
  });
  const std::unique_ptr<mote_beams, Closer<mote_beams_close>> beams(found);
  py::list result;
  for (size_t i = 0; i < mote_beams_count(beams.get()); ++i) {
    const int32_t* first = nullptr;
    size_t count = 0;
    float score = 0.0f;
    check([&](mote_error* error) { return mote_beams_get(beams.get(), i, &first, &count, &score, error); });
    result.append(py::make_tuple(std::vector<int32_t>(first, first + count), score));
  }
  return result;
}

}  // namespace

void bind_beam_search(py::module_& module) {
  module.def("beam_search", &beam_search, py::arg("session"), py::arg("ids"), py::arg("options"));
}

}  // namespace mote::python
