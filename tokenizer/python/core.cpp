// llm_tokenizer._core: the C API of the tokenizers in Python's terms. The package llm_tokenizer gives it its public
// shape.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/capi/mote_tokenizer.h"

namespace py = pybind11;

namespace {

template <auto close>
struct Closer {
  template <typename T> void operator()(T* handle) const { close(handle); }
};

template <typename T>
T sized() {
  T value{};
  value.struct_size = sizeof value;
  return value;
}

[[noreturn]] void raise(const mote_tokenizer_error& error) {
  const py::object exception =
      py::module_::import("llm_tokenizer.errors").attr("error_from_code")(error.code, py::str(error.message));
  PyErr_SetObject(py::type::of(exception).ptr(), exception.ptr());
  throw py::error_already_set();
}

template <typename Call>
void check_without_gil(Call call) {
  auto error = sized<mote_tokenizer_error>();
  int32_t code = MOTE_TOKENIZER_OK;
  {
    const py::gil_scoped_release release;
    code = call(&error);
  }
  if (code != MOTE_TOKENIZER_OK) raise(error);
}

std::string_view utf8_of(const py::str& text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data == nullptr) throw py::error_already_set();
  return {data, static_cast<size_t>(size)};
}

py::bytes compile(const py::bytes& file, const std::string& name, const py::object& pattern,
                  const std::vector<std::pair<std::string, int32_t>>& special_tokens) {
  const std::string_view bytes = file;
  const std::string pattern_text = pattern.is_none() ? std::string() : pattern.cast<std::string>();
  std::vector<const char*> texts;
  std::vector<int32_t> ids;
  for (const auto& [text, id] : special_tokens) {
    texts.push_back(text.c_str());
    ids.push_back(id);
  }
  auto source = sized<mote_tokenizer_source>();
  source.bytes = bytes.data();
  source.num_bytes = bytes.size();
  source.name = name.c_str();
  source.pattern = pattern.is_none() ? nullptr : pattern_text.c_str();
  source.special_tokens = texts.data();
  source.special_ids = ids.data();
  source.num_special = ids.size();
  void* segment = nullptr;
  size_t num_bytes = 0;
  check_without_gil(
      [&](mote_tokenizer_error* error) { return mote_tokenizer_compile(&source, &segment, &num_bytes, error); });
  const std::unique_ptr<void, Closer<mote_tokenizer_free>> owned(segment);
  return py::bytes(static_cast<const char*>(segment), num_bytes);
}

template <typename Number>
py::list list_of(const Number* numbers, size_t count) {
  py::list list(count);
  for (size_t i = 0; i < count; ++i)
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLong(static_cast<long>(numbers[i])));
  return list;
}

py::list pairs_of(const uint32_t* numbers, size_t count) {
  py::list list(count);
  for (size_t i = 0; i < count; ++i) {
    PyObject* pair = PyTuple_New(2);
    if (pair == nullptr) throw py::error_already_set();
    PyTuple_SET_ITEM(pair, 0, PyLong_FromLong(static_cast<long>(numbers[2 * i])));
    PyTuple_SET_ITEM(pair, 1, PyLong_FromLong(static_cast<long>(numbers[2 * i + 1])));
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), pair);
  }
  return list;
}

// (ids, [(begin, end), ...] or None, type ids or None)
py::tuple tuple_of(const mote_tokenizer_encoding& encoding) {
  py::object offsets = py::none();
  py::object type_ids = py::none();
  if (encoding.offsets != nullptr) offsets = pairs_of(encoding.offsets, encoding.count);
  if (encoding.type_ids != nullptr) type_ids = list_of(encoding.type_ids, encoding.count);
  return py::make_tuple(list_of(encoding.ids, encoding.count), offsets, type_ids);
}

mote_tokenizer_options options_of(bool add_special, bool parse_special, int offsets) {
  auto options = sized<mote_tokenizer_options>();
  options.add_special = add_special;
  options.parse_special = parse_special;
  options.offsets = offsets;
  return options;
}

// Lets go of the members when it ends.
struct Encodings {
  explicit Encodings(size_t count) : all(count, sized<mote_tokenizer_encoding>()) {}
  ~Encodings() {
    for (mote_tokenizer_encoding& encoding : all) mote_tokenizer_encoding_clear(&encoding);
  }
  std::vector<mote_tokenizer_encoding> all;
};

struct Sequences {
  explicit Sequences(size_t count) : all(count, sized<mote_tokenizer_sequence>()) {}
  ~Sequences() {
    for (mote_tokenizer_sequence& sequence : all) mote_tokenizer_free(sequence.text);
  }
  std::vector<mote_tokenizer_sequence> all;
};

class Tokenizer {
 public:
  explicit Tokenizer(const py::bytes& segment) {
    const std::string_view bytes = segment;
    mote_tokenizer_handle* handle = nullptr;
    check_without_gil([&](mote_tokenizer_error* error) {
      return mote_tokenizer_open(bytes.data(), bytes.size(), 1, &handle, error);
    });
    handle_.reset(handle);
  }

  py::tuple encode(const py::str& text, bool add_special, bool parse_special, int offsets) const {
    return encode_utf8(utf8_of(text), add_special, parse_special, offsets);
  }
  py::tuple encode_bytes(const py::bytes& text, bool add_special, bool parse_special, int offsets) const {
    return encode_utf8(text, add_special, parse_special, offsets);
  }

  // inputs: [(text, pair or None), ...], kept alive by the list
  py::list encode_batch(const py::list& inputs, bool add_special, bool parse_special, int offsets,
                        int num_threads) const {
    std::vector<mote_tokenizer_input> texts;
    for (const py::handle item : inputs) {
      const auto both = py::reinterpret_borrow<py::tuple>(item);
      auto input = sized<mote_tokenizer_input>();
      const std::string_view text = utf8_of(py::reinterpret_borrow<py::str>(both[0]));
      input.text = text.data();
      input.num_bytes = text.size();
      if (!both[1].is_none()) {
        const std::string_view pair = utf8_of(py::reinterpret_borrow<py::str>(both[1]));
        input.pair = pair.data();
        input.num_pair_bytes = pair.size();
      }
      texts.push_back(input);
    }
    const mote_tokenizer_options options = options_of(add_special, parse_special, offsets);
    Encodings encodings(texts.size());
    check_without_gil([&](mote_tokenizer_error* error) {
      return mote_tokenizer_encode_batch(handle_.get(), texts.data(), texts.size(), &options, num_threads,
                                         encodings.all.data(), error);
    });
    py::list results(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) results[i] = tuple_of(encodings.all[i]);
    return results;
  }

  py::list decode_batch(const std::vector<std::vector<int32_t>>& ids, bool skip_special, int num_threads) const {
    Sequences sequences(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      sequences.all[i].ids = ids[i].data();
      sequences.all[i].count = ids[i].size();
    }
    check_without_gil([&](mote_tokenizer_error* error) {
      return mote_tokenizer_decode_batch(handle_.get(), sequences.all.data(), ids.size(), skip_special, num_threads,
                                         error);
    });
    py::list results(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) results[i] = py::str(sequences.all[i].text, sequences.all[i].num_bytes);
    return results;
  }

  py::str decode(const std::vector<int32_t>& ids, bool skip_special) const {
    char* text = nullptr;
    size_t num_bytes = 0;
    check_without_gil([&](mote_tokenizer_error* error) {
      return mote_tokenizer_decode(handle_.get(), ids.data(), ids.size(), skip_special, &text, &num_bytes, error);
    });
    const std::unique_ptr<char, Closer<mote_tokenizer_free>> owned(text);
    return py::str(text, num_bytes);
  }

  py::object id_to_token(int32_t id) const {
    char* text = nullptr;
    size_t num_bytes = 0;
    check_without_gil([&](mote_tokenizer_error* error) {
      return mote_tokenizer_id_to_token(handle_.get(), id, &text, &num_bytes, error);
    });
    const std::unique_ptr<char, Closer<mote_tokenizer_free>> owned(text);
    return text == nullptr ? py::object(py::none()) : py::object(py::str(text, num_bytes));
  }

  py::object token_to_id(const py::str& token) const {
    const std::string_view text = utf8_of(token);
    const int32_t id = mote_tokenizer_token_to_id(handle_.get(), text.data(), text.size());
    return id < 0 ? py::object(py::none()) : py::object(py::int_(id));
  }

  int32_t num_ids() const { return mote_tokenizer_num_ids(handle_.get()); }
  bool is_special(int32_t id) const { return mote_tokenizer_is_special(handle_.get(), id) != 0; }

 private:
  py::tuple encode_utf8(std::string_view text, bool add_special, bool parse_special, int offsets) const {
    const mote_tokenizer_options options = options_of(add_special, parse_special, offsets);
    Encodings encoding(1);
    check_without_gil([&](mote_tokenizer_error* error) {
      return mote_tokenizer_encode(handle_.get(), text.data(), text.size(), &options, encoding.all.data(), error);
    });
    return tuple_of(encoding.all.front());
  }

  std::unique_ptr<mote_tokenizer_handle, Closer<mote_tokenizer_close>> handle_;
};

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C API of Mote's tokenizers; use llm_tokenizer.";
  module.def("compile", &compile, py::arg("file"), py::arg("name"), py::arg("pattern"), py::arg("special_tokens"));
  py::class_<Tokenizer>(module, "Tokenizer")
      .def(py::init<const py::bytes&>(), py::arg("segment"))
      .def("encode", &Tokenizer::encode, py::arg("text"), py::arg("add_special"), py::arg("parse_special"),
           py::arg("offsets"))
      .def("encode_bytes", &Tokenizer::encode_bytes, py::arg("text"), py::arg("add_special"), py::arg("parse_special"),
           py::arg("offsets"))
      .def("encode_batch", &Tokenizer::encode_batch, py::arg("inputs"), py::arg("add_special"),
           py::arg("parse_special"), py::arg("offsets"), py::arg("num_threads"))
      .def("decode", &Tokenizer::decode, py::arg("ids"), py::arg("skip_special"))
      .def("decode_batch", &Tokenizer::decode_batch, py::arg("sequences"), py::arg("skip_special"),
           py::arg("num_threads"))
      .def("id_to_token", &Tokenizer::id_to_token, py::arg("id"))
      .def("token_to_id", &Tokenizer::token_to_id, py::arg("token"))
      .def("num_ids", &Tokenizer::num_ids)
      .def("is_special", &Tokenizer::is_special, py::arg("id"));
}
