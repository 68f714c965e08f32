#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/utf8.h"
#include "runner/store/answer.h"
#include "runner/store/listing.h"
#include "runner/store/names.h"
#include "tests/fuzz/targets.h"

namespace mote::test {
namespace {

using store::Verdict;

// A finding: something that is no crash but must not be.
void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

std::string_view text_of(Input input) { return {reinterpret_cast<const char*>(input.data()), input.size()}; }

// What the hub answers.
void fuzz_store_listing(Input input) {
  (void)store::parse_search(text_of(input));
  const auto listing = store::parse_listing(text_of(input), "org/name");
  if (!listing.ok()) return require(!listing.status().message().empty(), "refused without a message");
  std::vector<std::string> files;
  for (const store::HubFile& file : listing->files) {
    require(store::is_safe(file.path) && file.path.ends_with(".mote"), "a file that would leave its folder");
    require(file.bytes >= -1 && (file.sha256.empty() || file.sha256.size() == 64), "a size or a hash that is none");
    files.push_back(file.path);
  }
  for (const char* tag : {"", "8w", "x"}) {
    const auto chosen = store::choose(files, tag);
    require(!chosen || std::find(files.begin(), files.end(), *chosen) != files.end(), "a file that is not there");
  }
}

// A status in two bytes, then what was asked for, then headers.
void fuzz_store_answer(Input input) {
  if (input.size() < 6) return;
  const auto byte = [&](size_t i) { return static_cast<int>(input[i]); };
  store::Asked asked{"https://a.example/x?y", byte(2) * 100, -1, byte(4) % 2 == 0 ? "" : "\"one\""};
  if (byte(3) % 2 == 0) asked.total = asked.have + byte(3) * 10 + 1;
  const Verdict verdict = store::judge(asked, byte(0) * 4 + byte(1) % 4, store::Headers(text_of(input.subspan(5))));
  if (verdict.kind == Verdict::Kind::kBody) {
    require(verdict.from == 0 || verdict.from == asked.have, "bytes that were not asked for");
    require(verdict.to < 0 || verdict.to >= verdict.from, "an answer that ends before it begins");
    require(asked.total < 0 || (verdict.total == asked.total && verdict.to <= asked.total), "more than the file has");
  }
  if (verdict.kind == Verdict::Kind::kRedirect)
    require(verdict.url.starts_with("https://") && store::parse_url(verdict.url).has_value(), "sent to no safe place");
  require(verdict.wait_s >= 0, "a wait into the past");
}

// Names and URLs that anybody may type.
void fuzz_store_name(Input input) {
  const std::string_view text = text_of(input);
  for (const auto& name : {store::parse_name(text), store::name_of_url(text)}) {
    if (!name) continue;
    require(store::is_safe(name->repo) && (name->tag.empty() || name->tag.find("..") == std::string::npos),
            "a name that leaves the store");
    require(store::parse_name(name->text()) == name, "a name that reads otherwise the second time");
  }
  require(store::unquote(store::quote(text)) == text, "quoted and lost");
}

std::vector<std::string> listing_seeds() {
  return {R"({"sha": "c0ffee", "cardData": {"license": "mit"}, "siblings": [{"rfilename": "a-8w.mote", "size": 3,
              "blobId": "0123456789012345678901234567890123456789", "lfs": {"sha256":
              "0123456789012345678901234567890123456789012345678901234567890123", "size": 5}}, {"rfilename": "x/b.mote"}]})",
          R"([{"id": "org/name"}, {"id": "org/other"}])"};
}

std::vector<std::string> answer_seeds() {
  const std::string start("\x33\x02\x04\x02\x01", 5);
  return {start + "Content-Range: bytes 400-420/421\r\nContent-Length: 21\r\nETag: \"one\"\r\n",
          std::string("\x32\x00\x00\x02\x00", 5) + "content-length: 21\nContent-Encoding: identity\n",
          std::string("\x4b\x02\x04\x02\x01", 5) + "Location: ../other?x#y\r\n",
          std::string("\x6b\x01\x04\x02\x01", 5) + "Retry-After: 120\r\n"};
}

std::vector<std::string> name_seeds() {
  return {"org/name@refs/pr/1:sub/a-8w.mote", "https://example.com:81/models/v1/t-8w.mote?x=1#y",
          "org/name:Q4_K_M.gguf"};
}

}  // namespace

const std::vector<Target>& fuzz_targets() {
  static const std::vector<Target> targets{{"store_listing", fuzz_store_listing, listing_seeds},
                                           {"store_answer", fuzz_store_answer, answer_seeds},
                                           {"store_name", fuzz_store_name, name_seeds}};
  return targets;
}

}  // namespace mote::test
