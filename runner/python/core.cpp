// llm_runner._core: the C API in Python's terms. The package llm_runner gives it its public shape.
#include "runner/python/bindings.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C API of Mote; use llm_runner.";
  module.attr("__version__") = mote_version();
  mote::python::bind_errors(module);
  mote::python::bind_log(module);
  mote::python::bind_options(module);
  mote::python::bind_model(module);
  mote::python::bind_beam_search(module);
  mote::python::bind_chat(module);
  mote::python::bind_chat_turn(module);
  mote::python::bind_reply(module);
  mote::python::bind_session(module);
  mote::python::bind_adapter(module);
  mote::python::bind_grammar(module);
  mote::python::bind_generation(module);
  mote::python::bind_batch(module);
  mote::python::bind_embedder(module);
  mote::python::bind_store(module);
}
