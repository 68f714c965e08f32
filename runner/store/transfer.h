// One file, by as many requests as it takes.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "runner/store/answer.h"
#include "runner/store/exchange.h"
#include "runner/store/part.h"

namespace mote::store {

struct TransferOptions {
  std::string name;  // of the model, for messages
  std::string file;  // likewise
  std::string url;
  std::string token;             // for the origin of `url`
  std::string unchanged_etag{};  // of the file that the store has already; "": it has none, or without an ETag
  bool allow_metered = false;
  int64_t keep_free_bytes = 0;
};

// Fills a part until it is complete and its hash is the one that was expected. What has come stays, but where it proved
// to be wrong.
class Transfer : public Exchange {
 public:
  // is_metered: outlives the transfer
  Transfer(Part part, TransferOptions options, const std::atomic<bool>& is_metered);

  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() override { (void)part_.flush(); }

  // Errors: those of Download
  Result<Step> next() override;
  Result<bool> respond(int status, std::string_view headers) override;
  Status write(std::span<const std::byte> bytes) override;
  Status end(std::string_view broken) override;

  Part& part() { return part_; }
  const Part& part() const { return part_; }
  // Once done: the server says that the file is the one with unchanged_etag, and nothing has come.
  bool is_unchanged() const { return is_unchanged_; }

 private:
  std::string shown() const { return options_.name + ": " + options_.file; }
  void back_to_start();
  Status begin_anew();
  Status check_metered() const;
  Status check_room() const;
  Status check_start();
  Status check_hash();
  Status restart(const std::string& reason);
  Status again(const std::string& reason, int64_t wait_s = 0);
  Status dropped(Status status);

  Part part_;
  const TransferOptions options_;
  const Access access_;
  const std::atomic<bool>& is_metered_;
  std::string url_;  // of the next request
  int num_redirects_ = 0;
  std::optional<Verdict> answer_;  // whose body comes
  std::string complaint_;          // about it; "": none
  bool is_followed_up_ = false;    // it is known what to do next, whatever else comes of the answer
  int64_t bytes_before_ = 0;       // the request
  Retries retries_;
  int num_restarts_ = 0;
  bool has_room_ = false;     // as was asked
  uint64_t num_checked_ = 0;  // bytes of the file of which it was asked whether they can be run here
  uint64_t program_end_ = 0;  // 0: not known
  bool is_verified_ = false;  // all of it, against the hash
  bool is_unchanged_ = false;
};

}  // namespace mote::store
