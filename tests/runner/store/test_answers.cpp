#include <gtest/gtest.h>

#include "runner/store/answer.h"
#include "runner/store/http.h"
#include "runner/store/listing.h"

namespace mote::store {
namespace {

using Kind = Verdict::Kind;

const Asked kAll{"https://a.example/x/f?q=1", 0, 1000, {}};
const Asked kRest{"https://a.example/x/f?q=1", 400, 1000, "\"one\""};

Kind kind(const Asked& asked, int status, const char* headers) { return judge(asked, status, Headers(headers)).kind; }

TEST(Answers, whole_files) {
  const Verdict verdict = judge(kAll, 200, Headers("content-length: 1000\r\nETag:  \"one\" \r\n"));
  EXPECT_EQ(verdict.kind, Kind::kBody);
  EXPECT_EQ(verdict.from, 0);
  EXPECT_EQ(verdict.to, 1000);
  EXPECT_EQ(verdict.etag, "\"one\"");
  EXPECT_EQ(judge(kAll, 200, Headers("ETag: W/\"one\"")).etag, "");
  EXPECT_EQ(kind(kAll, 200, "Content-Length: 999"), Kind::kAgain);
  EXPECT_EQ(kind(kRest, 200, "Content-Length: 999"), Kind::kRestart);
  EXPECT_EQ(judge(kRest, 200, Headers("")).from, 0) << "a server may know no ranges";
  EXPECT_EQ(kind(kAll, 200, "Content-Encoding: gzip"), Kind::kRefused);
}

TEST(Answers, parts) {
  const Verdict verdict = judge(kRest, 206, Headers("Content-Range: bytes 400-999/1000\nContent-Length: 600\n"));
  EXPECT_EQ(verdict.kind, Kind::kBody);
  EXPECT_EQ(verdict.from, 400);
  EXPECT_EQ(verdict.to, 1000);
  EXPECT_EQ(judge(kRest, 206, Headers("Content-Range: bytes 400-500/*")).to, 501);
  EXPECT_EQ(kind(kRest, 206, ""), Kind::kAgain);
  EXPECT_EQ(kind(kRest, 206, "Content-Range: bytes 401-999/1000"), Kind::kAgain) << "others than asked for";
  EXPECT_EQ(kind(kRest, 206, "Content-Range: bytes 400-1000/*"), Kind::kAgain);
  EXPECT_EQ(kind(kRest, 206, "Content-Range: bytes 400-999/1000\nContent-Length: 599"), Kind::kAgain);
  EXPECT_EQ(kind(kRest, 206, "Content-Range: bytes 400-1000/1001"), Kind::kRestart);
  EXPECT_EQ(kind(kRest, 206, "Content-Range: bytes 400-999/1000\nETag: \"two\""), Kind::kRestart);
  EXPECT_EQ(kind(kRest, 416, "Content-Range: bytes */300"), Kind::kRestart);
  EXPECT_EQ(kind(kAll, 416, ""), Kind::kRefused);
}

TEST(Answers, other_places) {
  EXPECT_EQ(judge(kAll, 302, Headers("Location: https://b.example/y")).url, "https://b.example/y");
  EXPECT_EQ(judge(kAll, 307, Headers("Location: /y")).url, "https://a.example/y");
  EXPECT_EQ(judge(kAll, 308, Headers("Location: y?z")).url, "https://a.example/x/y?z");
  EXPECT_EQ(judge(kAll, 301, Headers("Location: //c.example/y")).url, "https://c.example/y");
  for (const char* wrong : {"", "Location: http://b.example/y", "Location: file:///etc/passwd", "Location: https://"})
    EXPECT_EQ(kind(kAll, 302, wrong), Kind::kRefused) << wrong;
}

TEST(Answers, waits_and_refusals) {
  EXPECT_EQ(judge(kAll, 429, Headers("Retry-After: 7")).wait_s, 7);
  EXPECT_EQ(judge(kAll, 503, Headers("Retry-After: Wed, 21 Oct 2037 07:28:00 GMT")).wait_s, 0);
  for (const int status : {408, 429, 502, 503, 504}) EXPECT_EQ(kind(kAll, status, ""), Kind::kAgain);
  for (const int status : {0, -1, 100, 204, 400, 404, 500, 99999}) EXPECT_EQ(kind(kAll, status, ""), Kind::kRefused);
}

TEST(Answers, ranges_are_read_strictly) {
  EXPECT_EQ(parse_content_range("bytes 0-0/1")->total, 1);
  for (const char* text : {"", "bytes", "bytes */5", "bytes 5-4/9", "bytes 0-9/9", "bytes -1-3/9", "items 0-1/2",
                           "bytes 0-99999999999999999999/*", "bytes 0x0-1/2"})
    EXPECT_FALSE(parse_content_range(text)) << text;
}

TEST(Answers, sizes_read_as_in_python) {
  EXPECT_EQ(human_bytes(21), "21 B");
  EXPECT_EQ(human_bytes(262144), "262.1 kB");
  EXPECT_EQ(human_bytes(4'700'000), "4.7 MB");
  EXPECT_EQ(human_bytes(1'250'000'000'000), "1250.00 GB");
}

TEST(Answers, listings) {
  const auto listing = parse_listing(R"({"sha": "c0ffee", "cardData": {"license": "mit"}, "siblings": [
      {"rfilename": "b.mote", "size": 3, "blobId": "0123456789012345678901234567890123456789"},
      {"rfilename": "a.mote", "lfs": {"sha256": "nothex", "size": 5}}, {"rfilename": "../c.mote"}, 7,
      {"rfilename": "README.md"}, {"rfilename": "a.mote", "size": 9}]})",
                                     "org/x");
  ASSERT_TRUE(listing.ok());
  EXPECT_EQ(listing->commit, "c0ffee");
  EXPECT_EQ(listing->license, "mit");
  ASSERT_EQ(listing->files.size(), 2u);
  EXPECT_EQ(listing->files[0].path, "a.mote");
  EXPECT_EQ(listing->files[0].bytes, 5);
  EXPECT_EQ(listing->files[0].sha256, "");
  EXPECT_EQ(listing->files[1].blob_id.size(), 40u);
  for (const char* wrong : {"", "{", "[]", "{}", R"({"siblings": {}})"}) EXPECT_FALSE(parse_listing(wrong, "o/x").ok());
}

}  // namespace
}  // namespace mote::store
