#include "runner/python/bindings.h"
#include "runner/python/cancellation.h"

namespace mote::python {
namespace {

std::unique_ptr<Vocabulary> vocabulary_of_model(const Model& model) {
  mote_vocabulary* handle = nullptr;
  check_without_gil(
      [&, of = model.handle()](mote_error* error) { return mote_model_vocabulary(of.get(), &handle, error); });
  return std::make_unique<Vocabulary>(handle);
}

std::unique_ptr<Vocabulary> vocabulary_of_tokens(const std::vector<py::bytes>& tokens,
                                                 const std::vector<int32_t>& eos_ids) {
  std::vector<const char*> texts;
  std::vector<size_t> sizes;
  for (const py::bytes& token : tokens) {
    const auto text = static_cast<std::string_view>(token);
    texts.push_back(text.data());
    sizes.push_back(text.size());
  }
  mote_vocabulary* handle = nullptr;
  check_without_gil([&](mote_error* error) {
    return mote_vocabulary_open(texts.data(), sizes.data(), texts.size(), eos_ids.data(), eos_ids.size(), &handle,
                                error);
  });
  return std::make_unique<Vocabulary>(handle);
}

std::unique_ptr<Grammar> compile(const Vocabulary& vocabulary, int32_t syntax, const py::bytes& source,
                                 int32_t whitespace, py::object is_cancelled) {
  Cancellation cancellation(std::move(is_cancelled));
  const auto text = static_cast<std::string_view>(source);
  auto options = sized<mote_grammar_options>();
  options.syntax = static_cast<mote_syntax>(syntax);
  options.source = text.data();
  options.source_bytes = text.size();
  options.json_whitespace = static_cast<mote_json_whitespace>(whitespace);
  options.is_cancelled = cancellation.function();
  options.user_data = cancellation.user_data();
  mote_grammar* handle = nullptr;
  cancellation.check_without_gil(
      [&](mote_error* error) { return mote_grammar_open(vocabulary.get(), &options, &handle, error); });
  return std::make_unique<Grammar>(handle);
}

class Constraint {
 public:
  explicit Constraint(mote_constraint* handle) : handle_(handle), num_words_((info().num_tokens + 31) / 32) {}

  static std::unique_ptr<Constraint> open(const Grammar& grammar) {
    mote_constraint* handle = nullptr;
    check([&](mote_error* error) { return mote_constraint_open(grammar.get(), &handle, error); });
    return std::make_unique<Constraint>(handle);
  }

  std::unique_ptr<Constraint> copy() const {
    mote_constraint* handle = nullptr;
    check([&](mote_error* error) { return mote_constraint_copy(handle_.get(), &handle, error); });
    return std::make_unique<Constraint>(handle);
  }

  py::array_t<uint32_t> mask() const {
    py::array_t<uint32_t> words(num_words_);
    check([&](mote_error* error) {
      return mote_constraint_mask(handle_.get(), words.mutable_data(), static_cast<size_t>(words.size()), error);
    });
    return words;
  }

  void accept(int32_t id) {
    check([&](mote_error* error) { return mote_constraint_accept(handle_.get(), id, error); });
  }

  mote_constraint_info info() const {
    auto result = sized<mote_constraint_info>();
    check([&](mote_error* error) { return mote_constraint_get_info(handle_.get(), &result, error); });
    return result;
  }

 private:
  std::unique_ptr<mote_constraint, Closer<mote_constraint_close>> handle_;
  int32_t num_words_;
};

}  // namespace

void bind_grammar(py::module_& module) {
  py::class_<Vocabulary>(module, "Vocabulary");
  module.def("vocabulary_of_model", &vocabulary_of_model, py::arg("model"));
  module.def("vocabulary_of_tokens", &vocabulary_of_tokens, py::arg("tokens"), py::arg("eos_ids"));
  py::class_<Grammar, std::shared_ptr<Grammar>>(module, "Grammar")
      .def(py::init(&compile), py::arg("vocabulary"), py::arg("syntax"), py::arg("source"), py::arg("whitespace"),
           py::arg("is_cancelled") = py::none());
  py::class_<Constraint>(module, "Constraint")
      .def(py::init(&Constraint::open), py::arg("grammar"))
      .def("copy", &Constraint::copy)
      .def("mask", &Constraint::mask)
      .def("accept", &Constraint::accept, py::arg("id"))
      .def("may_end", [](const Constraint& constraint) { return constraint.info().may_end != 0; })
      .def("is_complete", [](const Constraint& constraint) { return constraint.info().is_complete != 0; })
      .def("forced_token", [](const Constraint& constraint) {
        const int32_t id = constraint.info().forced_token;
        return id < 0 ? py::object(py::none()) : py::object(py::int_(id));
      });
}

}  // namespace mote::python
