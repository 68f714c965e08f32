#include "base/json.h"
#include "base/parts.h"
#include "runner/capi/handles.h"
#include "runner/store/download.h"
#include "runner/store/record.h"

using mote::Code;
using mote::Result;
using mote::Status;
using mote::capi::enter;
using mote::capi::give;
using mote::capi::give_string;
using mote::capi::guarded;
using mote::capi::share;
using mote::capi::Shared;
using mote::capi::text_or_empty;
using mote::store::Download;
using mote::store::Entry;
using mote::store::Step;
using mote::store::Store;

namespace mote::capi {

// With the texts that a caller sees.
struct ShownFile {
  Entry entry;
  std::string name = entry.name.text();
  std::string manifest = entry.manifest ? entry.manifest->json() : "";
};

}  // namespace mote::capi

using mote::capi::ShownFile;

namespace {

// What `guarded` does, in builds that have the store.
template <typename Body>
mote_error_code in_store(mote_error* error, Body body) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_PART("store", Code::kInvalidArgument);
    return body();
  });
}

std::vector<ShownFile> shown(std::vector<Entry> entries) {
  std::vector<ShownFile> files;
  for (Entry& entry : entries) files.push_back({std::move(entry)});
  return files;
}

}  // namespace

template <>
struct mote::capi::Object<mote_store> {
  static constexpr const char* kName = "store";
  Store store;
};

template <>
struct mote::capi::Object<mote_store_files> {
  static constexpr const char* kName = "list of files";
  std::vector<ShownFile> files;
};

template <>
struct mote::capi::Object<mote_download> {
  static constexpr const char* kName = "download";
  std::unique_ptr<Download> download;
  Occupancy occupancy{kName};
  Step step{};  // the last one
  std::string name{};
  std::string path{};
};

mote_error_code mote_store_open(const char* root, mote_store** out, mote_error* error) {
  return in_store(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    std::string folder = root == nullptr ? mote::store::default_root() : root;
    MOTE_REQUIRE(!folder.empty(), Code::kInvalidArgument, "the store has no folder: give one, or set MOTE_HOME");
    return give(out, Store(std::move(folder)));
  });
}

void mote_store_close(mote_store* store) { mote::capi::close(store); }

mote_error_code mote_store_folder(const mote_store* handle, const char* name, char** path, mote_error* error) {
  return in_store(error, [&]() -> Status {
    MOTE_ASSIGN(const auto store, share(handle));
    MOTE_REQUIRE_POINTER(path);
    if (name == nullptr) return give_string(store->store.root(), path);
    MOTE_ASSIGN(const mote::store::Name parsed, mote::store::require_name(name));
    return give_string(store->store.folder(parsed), path);
  });
}

mote_error_code mote_store_list(const mote_store* handle, const char* name, mote_store_files** out, mote_error* error) {
  return in_store(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto store, share(handle));
    if (name == nullptr) return give(out, shown(store->store.entries()));
    MOTE_ASSIGN(std::vector<Entry> found, store->store.meant(name));
    return give(out, shown(std::move(found)));
  });
}

size_t mote_store_files_count(const mote_store_files* handle) {
  const auto files = Shared<mote_store_files>::find(handle);
  return files ? files->files.size() : 0;
}

mote_error_code mote_store_files_get(const mote_store_files* handle, size_t index, mote_store_file* file,
                                     mote_error* error) {
  return in_store(error, [&]() -> Status {
    MOTE_ASSIGN(const auto files, share(handle));
    MOTE_REQUIRE_POINTER(file);
    MOTE_REQUIRE(index < files->files.size(), Code::kInvalidArgument, "index = %zu: must be below %zu", index,
                 files->files.size());
    const ShownFile& found = files->files[index];
    mote_store_file result{};
    result.name = found.name.c_str();
    result.path = found.entry.path.c_str();
    result.manifest = found.manifest.c_str();
    result.bytes = static_cast<uint64_t>(found.entry.bytes);
    result.total_bytes = static_cast<uint64_t>(found.entry.total_bytes);
    result.is_whole = found.entry.is_whole;
    result.last_used_s = found.entry.last_used_s;
    return mote::capi::write_struct(result, file);
  });
}

void mote_store_files_close(mote_store_files* files) { mote::capi::close(files); }

mote_error_code mote_store_find(const mote_store* handle, const char* name, char** path, mote_error* error) {
  return in_store(error, [&]() -> Status {
    MOTE_ASSIGN(const auto store, share(handle));
    MOTE_REQUIRE_POINTER(name);
    MOTE_REQUIRE_POINTER(path);
    MOTE_ASSIGN(const Entry found, store->store.find(name));
    return give_string(found.path, path);
  });
}

mote_error_code mote_store_remove(mote_store* handle, const char* name, uint64_t* freed_bytes, mote_error* error) {
  return in_store(error, [&]() -> Status {
    MOTE_ASSIGN(const auto store, share(handle));
    MOTE_REQUIRE_POINTER(name);
    MOTE_ASSIGN(const std::vector<Entry> found, store->store.meant(name));
    int64_t freed = 0;
    for (const Entry& entry : found) {
      MOTE_RETURN_IF_ERROR(store->store.remove(entry));
      freed += entry.bytes;
    }
    if (freed_bytes != nullptr) *freed_bytes = static_cast<uint64_t>(freed);
    return {};
  });
}

mote_error_code mote_store_evict(mote_store* handle, uint64_t max_bytes, mote_store_files** out, mote_error* error) {
  return in_store(error, [&]() -> Status {
    if (out != nullptr) *out = nullptr;
    MOTE_ASSIGN(const auto store, share(handle));
    std::vector<Entry> removed = store->store.evict(static_cast<int64_t>(std::min<uint64_t>(max_bytes, INT64_MAX)));
    return out == nullptr ? Status() : give(out, shown(std::move(removed)));
  });
}

mote_error_code mote_store_record(mote_store* handle, const char* path, const char* manifest, mote_error* error) {
  return in_store(error, [&]() -> Status {
    MOTE_ASSIGN(const auto store, share(handle));
    MOTE_REQUIRE_POINTER(path);
    MOTE_REQUIRE_POINTER(manifest);
    MOTE_ASSIGN(mote::store::Manifest known, mote::store::parse_known(manifest));
    return mote::store::record(path, std::move(known));
  });
}

mote_error_code mote_parse_model_name(const char* text, char** json, mote_error* error) {
  return in_store(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(text);
    MOTE_REQUIRE_POINTER(json);
    const std::optional<mote::store::Name> name = mote::store::parse_name(text);
    if (!name) return give_string("null", json);
    return give_string("{\"repo\": " + mote::json_string(name->repo) + ", \"revision\": " +
                           mote::json_string(name->revision) + ", \"tag\": " + mote::json_string(name->tag) + "}",
                       json);
  });
}

mote_error_code mote_choose_model_file(const char* const* files, size_t count, const char* tag, int64_t* index,
                                       mote_error* error) {
  return in_store(error, [&]() -> Status {
    if (count > 0) MOTE_REQUIRE_POINTER(files);
    MOTE_REQUIRE_POINTER(index);
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
      MOTE_REQUIRE_POINTER(files[i]);
      names.emplace_back(files[i]);
    }
    const std::optional<std::string> chosen = mote::store::choose(names, text_or_empty(tag));
    *index = chosen ? std::ranges::find(names, *chosen) - names.begin() : -1;
    return {};
  });
}

mote_error_code mote_download_begin(const mote_store* handle, const char* what, const mote_download_options* options,
                                    mote_download** out, mote_error* error) {
  return in_store(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto store, share(handle));
    MOTE_REQUIRE_POINTER(what);
    mote_download_options given{};
    given.keep_free_bytes = -1;
    if (options != nullptr) MOTE_RETURN_IF_ERROR(mote::capi::read_struct(options, given));
    mote::store::DownloadOptions taken;
    taken.endpoint = text_or_empty(given.endpoint);
    taken.token = text_or_empty(given.token);
    taken.sha256 = text_or_empty(given.sha256);
    taken.allow_metered = given.allow_metered != 0;
    if (given.keep_free_bytes >= 0) taken.keep_free_bytes = given.keep_free_bytes;
    MOTE_ASSIGN(auto download, Download::begin(store->store, what, taken));
    return give(out, std::move(download));
  });
}

void mote_download_close(mote_download* download) { mote::capi::close(download); }

mote_error_code mote_download_next(mote_download* handle, mote_download_step* step, mote_error* error) {
  return in_store(error, [&]() -> Status {
    MOTE_ASSIGN(const auto download, enter(handle));
    MOTE_REQUIRE_POINTER(step);
    MOTE_ASSIGN(download->step, download->download->next());
    const Step& found = download->step;
    return mote::capi::write_struct(
        mote_download_step{0, static_cast<mote_download_action>(found.kind), found.url.c_str(), found.headers.c_str(),
                           found.wait_ms, found.reason.c_str()},
        step);
  });
}

mote_error_code mote_download_respond(mote_download* handle, int32_t status, const char* headers, size_t headers_bytes,
                                      int32_t* wants_body, mote_error* error) {
  return in_store(error, [&]() -> Status {
    MOTE_ASSIGN(const auto download, enter(handle));
    if (headers_bytes > 0) MOTE_REQUIRE_POINTER(headers);
    MOTE_REQUIRE_POINTER(wants_body);
    const std::string_view text = headers_bytes == 0 ? std::string_view() : std::string_view(headers, headers_bytes);
    MOTE_ASSIGN(const bool is_wanted, download->download->respond(status, text));
    *wants_body = is_wanted ? 1 : 0;
    return {};
  });
}

mote_error_code mote_download_write(mote_download* handle, const void* data, size_t bytes, mote_error* error) {
  return in_store(error, [&]() -> Status {
    MOTE_ASSIGN(const auto download, enter(handle));
    if (bytes > 0) MOTE_REQUIRE_POINTER(data);
    return download->download->write({static_cast<const std::byte*>(data), bytes});
  });
}

mote_error_code mote_download_end(mote_download* handle, const char* broken, mote_error* error) {
  return in_store(error, [&]() -> Status {
    MOTE_ASSIGN(const auto download, enter(handle));
    return download->download->end(text_or_empty(broken));
  });
}

void mote_download_set_metered(mote_download* handle, int32_t is_metered) {
  if (const auto download = Shared<mote_download>::find(handle)) download->download->set_metered(is_metered != 0);
}

mote_error_code mote_download_get_info(mote_download* handle, mote_download_info* info, mote_error* error) {
  return in_store(error, [&]() -> Status {
    MOTE_ASSIGN(const auto download, enter(handle));
    MOTE_REQUIRE_POINTER(info);
    const Download& of = *download->download;
    download->name = of.name().text();
    download->path = of.path();
    return mote::capi::write_struct(mote_download_info{0, download->name.c_str(), download->path.c_str(), of.bytes(),
                                                       of.total_bytes(), of.is_done(), of.is_new()},
                                    info);
  });
}
