// The hub is asked what a repository has, and where it has none of that name, which ones it has.
#pragma once

#include <string>
#include <vector>

#include "runner/store/exchange.h"
#include "runner/store/listing.h"
#include "runner/store/names.h"

namespace mote::store {

class Lookup : public Exchange {
 public:
  // endpoint: "https://huggingface.co"
  Lookup(const std::string& endpoint, const std::string& token, Name name);

  // Errors, here and below: kFileUnreadable and kFileNotFound, saying what to do, with the closest name.
  Result<Step> next() override;
  Result<bool> respond(int status, std::string_view headers) override;
  Status write(std::span<const std::byte> bytes) override;
  Status end(std::string_view broken) override;

  // Once done.
  const Listing& listing() const { return listing_; }

 private:
  enum class Stage : uint8_t { kList, kSearchOwner, kSearchModel, kDone };
  // What the request under way has brought. kGoOn: it is known what to do next, whatever its body says.
  enum class Outcome : uint8_t { kNothing, kBody, kGoOn };

  std::string first_url(Stage stage) const;
  Status refuse(int status, std::string_view error_code);
  Status end_search();

  const std::string endpoint_;
  const Access access_;
  const Name name_;
  Stage stage_ = Stage::kList;
  std::string url_;  // of the next request
  int num_redirects_ = 0;
  Retries retries_;
  Outcome outcome_ = Outcome::kNothing;
  std::string body_;
  std::vector<std::string> known_;  // names of the hub
  Listing listing_;
};

}  // namespace mote::store
