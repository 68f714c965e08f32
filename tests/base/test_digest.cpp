#include "base/digest.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace mote {
namespace {

template <typename Digest>
std::string digest_of(const std::string& text, size_t piece_bytes = 1000) {
  Digest digest;
  for (size_t at = 0; at < text.size(); at += piece_bytes)
    digest.update(std::as_bytes(std::span(text).subspan(at, std::min(piece_bytes, text.size() - at))));
  return digest.hex();
}

// Examples of FIPS 180-4; tests/mote compares the hashes of downloads with those of hashlib.
TEST(Digest, has_the_values_of_the_standard) {
  EXPECT_EQ(digest_of<Sha256>(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest_of<Sha256>("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest_of<Sha256>("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest_of<Sha256>(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(digest_of<Sha1>(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(digest_of<Sha1>("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(digest_of<Sha1>(std::string(1'000'000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(Digest, does_not_depend_on_the_pieces) {
  std::mt19937 random(1);
  std::string text;
  for (size_t length = 0; length < 200; ++length) {
    const std::string whole = digest_of<Sha256>(text);
    for (const size_t piece : {1, 7, 63, 64, 65}) ASSERT_EQ(digest_of<Sha256>(text, piece), whole) << length;
    text += static_cast<char>(random());
  }
}

TEST(Digest, goes_on_after_it_was_asked) {
  Sha256 digest;
  digest.update(std::as_bytes(std::span("ab", 2)));
  EXPECT_EQ(digest.hex(), digest_of<Sha256>("ab"));
  digest.update(std::as_bytes(std::span("c", 1)));
  EXPECT_EQ(digest.hex(), digest_of<Sha256>("abc"));
}

}  // namespace
}  // namespace mote
