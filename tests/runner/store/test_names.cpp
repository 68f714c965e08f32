#include "runner/store/names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mote::store {
namespace {

TEST(Names, have_parts) {
  EXPECT_EQ(parse_name("org/name"), (Name{"org/name", "", ""}));
  EXPECT_EQ(parse_name("org/name@v2:8w"), (Name{"org/name", "v2", "8w"}));
  EXPECT_EQ(parse_name("org/name@refs/pr/1:sub/file.mote"), (Name{"org/name", "refs/pr/1", "sub/file.mote"}));
  EXPECT_EQ(parse_name("org/name:x.gguf")->tag, "x");
  EXPECT_EQ(parse_name("org/name@v2:8w")->text(), "org/name@v2:8w");
  EXPECT_EQ(parse_name("org/name@v2:8w")->model(), "org/name@v2");
}

TEST(Names, are_no_paths) {
  for (const char* text :
       {"", "name", "/org/name", "./org/name", "org/name.mote", "org/name.git", "org/../x", "org/name@",
        "org/name:", "org/a/b", "_org/name", "org/", "org/n ame", "org/name@v:a:b", "~/x", "C:\\x/y"})
    EXPECT_FALSE(parse_name(text)) << text;
}

TEST(Names, of_urls_keep_hosts_and_folders_apart) {
  EXPECT_EQ(name_of_url("https://example.com/tiny.mote")->text(), "example.com/tiny:tiny");
  EXPECT_EQ(name_of_url("https://example.com:81/a/v1/t-8w.mote?x=1#y")->text(), "example.com/a:v1/t-8w");
  EXPECT_EQ(name_of_url("http://Example.com/a%20b/../c.mote")->text(), "example.com/a_b:0./c");
  for (const char* url : {"https://example.com", "https://example.com/", "ftp://example.com/x", "https:///x",
                          "https://user:word@example.com/x", "https://example.com/a b"})
    EXPECT_FALSE(name_of_url(url)) << url;
}

TEST(Names, choose_among_files) {
  const std::vector<std::string> two = {"a-8w.mote", "a-4w.mote"}, one = {"x.mote"};
  EXPECT_EQ(choose(one, ""), "x.mote");
  EXPECT_EQ(choose(two, ""), std::nullopt);
  EXPECT_EQ(choose(two, "8W"), "a-8w.mote");
  EXPECT_EQ(choose(two, "a"), std::nullopt);
  EXPECT_EQ(choose(two, "w"), std::nullopt);
  EXPECT_EQ(choose(two, "a-4w"), "a-4w.mote");
  const std::vector<std::string> with_default = {"a-8da4w.mote", "a-8w.mote"};
  EXPECT_EQ(choose(with_default, ""), "a-8da4w.mote");
  const std::vector<std::string> gguf = {"T-1.5B-Q4_K_M.mote", "T-1.5B-Q8_0.mote", "BF16/T-1.5B-BF16.mote"};
  EXPECT_EQ(choose(gguf, ""), "T-1.5B-Q4_K_M.mote");
  EXPECT_EQ(choose(gguf, "q8_0"), "T-1.5B-Q8_0.mote");
  EXPECT_EQ(choose(gguf, "bf16"), "BF16/T-1.5B-BF16.mote");
}

TEST(Names, safe_paths_stay_inside) {
  EXPECT_TRUE(is_safe("a.mote") && is_safe("sub/a.mote"));
  for (const char* path : {"", "/a", "../a", "a/../b", "a//b", "a/", ".", "a\\b", "c:a"})
    EXPECT_FALSE(is_safe(path)) << path;
}

TEST(Names, quote_and_back) {
  EXPECT_EQ(quote("refs/pr/1 \xC3\xA9"), "refs%2Fpr%2F1%20%C3%A9");
  EXPECT_EQ(quote("a/b c", "/"), "a/b%20c");
  EXPECT_EQ(unquote("refs%2Fpr%2f1%"), "refs/pr/1%");
}

}  // namespace
}  // namespace mote::store
