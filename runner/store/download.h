// A file gets into the store: found on the hub or at an URL, received, checked, named.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_lock.h"
#include "runner/store/catalog.h"
#include "runner/store/exchange.h"
#include "runner/store/lookup.h"
#include "runner/store/transfer.h"

namespace mote::store {

struct DownloadOptions {
  std::string endpoint{};  // of the hub; "": that of HF_ENDPOINT, or https://huggingface.co
  std::string token{};     // of the hub, or of the URL's server; "": for the hub that of HF_TOKEN
  std::string sha256{};    // of an URL's file; "": not known
  bool allow_metered = false;
  int64_t keep_free_bytes = int64_t{64} << 20;  // on the disk
};

// What has come stays when it ends early, and another download of the same goes on with it. After an error every call
// returns that. The model is locked from the first step to the end of the object. Thread safety: one call at a time,
// but for set_metered.
class Download : public Exchange {
 public:
  // what: a name, or an URL   Errors: kInvalidArgument
  static Result<std::unique_ptr<Download>> begin(const Store& store, std::string_view what,
                                                 const DownloadOptions& options);

  // Errors: kFileUnreadable and kFileNotFound where it cannot be had, kFileUnwritable, kInvalidState on a metered
  // network; those of map, verify and bind for a file that does not work here.
  Result<Step> next() override;
  Result<bool> respond(int status, std::string_view headers) override;
  Status write(std::span<const std::byte> bytes) override;
  Status end(std::string_view broken) override;

  // From any thread: whether the network is metered.
  void set_metered(bool is_metered) { is_metered_.store(is_metered); }

  const Name& name() const { return name_; }         // its tag: that of the file once it is known
  const std::string& path() const { return path_; }  // where the file goes; "": not known yet
  int64_t bytes() const;                             // that are there
  int64_t total_bytes() const;                       // -1: not known yet
  bool is_done() const { return is_done_; }
  bool is_new() const { return is_new_; }  // once done: whether the store has another file than before

 private:
  Download(Store store, Name name, DownloadOptions options)
      : store_(std::move(store)), name_(std::move(name)), options_(std::move(options)) {}

  // Keeps the first error of all calls.
  template <typename T>
  T kept(T result);
  Result<Step> advance();
  Status find_file();
  Status begin_transfer(Wanted wanted, const std::string& url);
  Status finish();

  const Store store_;
  Name name_;
  DownloadOptions options_;
  std::string url_;  // what was asked for, if that is one
  std::atomic<bool> is_metered_ = false;
  Status failure_;
  std::optional<FileLock> lock_;
  std::optional<Lookup> lookup_;
  std::optional<Transfer> transfer_;
  std::string file_;  // in its repository
  std::string path_;
  bool is_done_ = false;
  bool is_new_ = false;
  int64_t bytes_ = 0;  // once done
};

}  // namespace mote::store
