#include "runner/python/bindings.h"

namespace mote::python {
namespace {

class Store {
 public:
  explicit Store(const std::optional<std::string>& root) {
    mote_store* store = nullptr;
    check([&](mote_error* error) { return mote_store_open(root ? root->c_str() : nullptr, &store, error); });
    handle_.reset(store);
  }
  mote_store* get() const { return handle_.get(); }

 private:
  std::unique_ptr<mote_store, Closer<mote_store_close>> handle_;
};

using Files = std::unique_ptr<mote_store_files, Closer<mote_store_files_close>>;

// (name, path, manifest, bytes, total_bytes, is_whole, last_used_s) each
py::list tuples_of(const Files& files) {
  py::list result;
  for (size_t i = 0; i < mote_store_files_count(files.get()); ++i) {
    auto file = sized<mote_store_file>();
    check([&](mote_error* error) { return mote_store_files_get(files.get(), i, &file, error); });
    result.append(py::make_tuple(file.name, file.path, file.manifest, file.bytes, file.total_bytes, file.is_whole != 0,
                                 file.last_used_s));
  }
  return result;
}

py::list list(const Store& store, const std::optional<std::string>& name) {
  mote_store_files* files = nullptr;
  check_without_gil(
      [&](mote_error* error) { return mote_store_list(store.get(), name ? name->c_str() : nullptr, &files, error); });
  return tuples_of(Files(files));
}

py::list evict(const Store& store, uint64_t max_bytes) {
  mote_store_files* files = nullptr;
  check_without_gil([&](mote_error* error) { return mote_store_evict(store.get(), max_bytes, &files, error); });
  return tuples_of(Files(files));
}

uint64_t remove(const Store& store, const std::string& name) {
  uint64_t freed = 0;
  check_without_gil([&](mote_error* error) { return mote_store_remove(store.get(), name.c_str(), &freed, error); });
  return freed;
}

void record(const Store& store, const std::string& path, const std::string& manifest) {
  check_without_gil(
      [&](mote_error* error) { return mote_store_record(store.get(), path.c_str(), manifest.c_str(), error); });
}

py::str folder(const Store& store, const std::optional<std::string>& name) {
  return take_string([&](char** text, mote_error* error) {
    return mote_store_folder(store.get(), name ? name->c_str() : nullptr, text, error);
  });
}

py::str find(const Store& store, const std::string& name) {
  return take_string(
      [&](char** text, mote_error* error) { return mote_store_find(store.get(), name.c_str(), text, error); });
}

class Download {
 public:
  Download(const Store& store, const std::string& what, const std::string& endpoint, const std::string& token,
           const std::string& sha256, bool allow_metered, int64_t keep_free_bytes) {
    auto options = sized<mote_download_options>();
    options.endpoint = endpoint.c_str();
    options.token = token.c_str();
    options.sha256 = sha256.c_str();
    options.allow_metered = allow_metered;
    options.keep_free_bytes = keep_free_bytes;
    mote_download* download = nullptr;
    check(
        [&](mote_error* error) { return mote_download_begin(store.get(), what.c_str(), &options, &download, error); });
    handle_.reset(download);
  }

  // (url, headers, wait_ms, reason); url "": to wait; None: done
  py::object next() {
    auto step = sized<mote_download_step>();
    check_without_gil([&](mote_error* error) { return mote_download_next(get(), &step, error); });
    if (step.action == MOTE_DOWNLOAD_DONE) return py::none();
    return py::make_tuple(step.url, step.headers, step.wait_ms, step.reason);
  }

  bool respond(int32_t status, const std::string& headers) {
    int32_t wants_body = 0;
    check_without_gil([&](mote_error* error) {
      return mote_download_respond(get(), status, headers.data(), headers.size(), &wants_body, error);
    });
    return wants_body != 0;
  }

  void write(const py::bytes& data) {
    const auto bytes = static_cast<std::string_view>(data);
    check_without_gil([&](mote_error* error) { return mote_download_write(get(), bytes.data(), bytes.size(), error); });
  }

  void end(const std::string& broken) {
    check_without_gil([&](mote_error* error) { return mote_download_end(get(), broken.c_str(), error); });
  }

  void set_metered(bool is_metered) { mote_download_set_metered(get(), is_metered ? 1 : 0); }

  // (name, path, bytes, total_bytes, is_new)
  py::tuple info() const {
    auto info = sized<mote_download_info>();
    check([&](mote_error* error) { return mote_download_get_info(get(), &info, error); });
    return py::make_tuple(info.name, info.path, info.bytes, info.total_bytes, info.is_new != 0);
  }

  void close() { handle_.reset(); }

 private:
  mote_download* get() const { return handle_.get(); }

  std::unique_ptr<mote_download, Closer<mote_download_close>> handle_;
};

py::str parse_model_name(const std::string& text) {
  return take_string([&](char** json, mote_error* error) { return mote_parse_model_name(text.c_str(), json, error); });
}

// -1: none or several
int64_t choose_model_file(const std::vector<std::string>& files, const std::string& tag) {
  std::vector<const char*> names;
  for (const std::string& file : files) names.push_back(file.c_str());
  int64_t index = -1;
  check([&](mote_error* error) {
    return mote_choose_model_file(names.data(), names.size(), tag.c_str(), &index, error);
  });
  return index;
}

}  // namespace

void bind_store(py::module_& module) {
  py::class_<Store>(module, "Store")
      .def(py::init<const std::optional<std::string>&>(), py::arg("root"))
      .def("folder", &folder, py::arg("name"))
      .def("list", &list, py::arg("name"))
      .def("find", &find, py::arg("name"))
      .def("remove", &remove, py::arg("name"))
      .def("evict", &evict, py::arg("max_bytes"))
      .def("record", &record, py::arg("path"), py::arg("manifest"));
  py::class_<Download>(module, "Download")
      .def(py::init<const Store&, const std::string&, const std::string&, const std::string&, const std::string&, bool,
                    int64_t>(),
           py::arg("store"), py::arg("what"), py::arg("endpoint"), py::arg("token"), py::arg("sha256"),
           py::arg("allow_metered"), py::arg("keep_free_bytes"))
      .def("next", &Download::next)
      .def("respond", &Download::respond, py::arg("status"), py::arg("headers"))
      .def("write", &Download::write, py::arg("data"))
      .def("end", &Download::end, py::arg("broken"))
      .def("set_metered", &Download::set_metered, py::arg("is_metered"))
      .def("info", &Download::info)
      .def("close", &Download::close);
  module.def("parse_model_name", &parse_model_name, py::arg("text"));
  module.def("choose_model_file", &choose_model_file, py::arg("files"), py::arg("tag"));
}

}  // namespace mote::python
