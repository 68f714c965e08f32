#include "runner/store/catalog.h"

#include "base/file_lock.h"
#include "runner/program/mapped.h"
#include "tests/runner/store/fixture.h"

namespace mote::store {
namespace {

using test::StoreTest;

std::vector<std::string> names_of(const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.name.text());
  return names;
}

using Names = std::vector<std::string>;

TEST_F(StoreTest, an_absent_folder_is_empty) {
  EXPECT_TRUE(store_.entries().empty());
  EXPECT_EQ(store_.find("org/x").status().code(), Code::kFileNotFound);
  EXPECT_TRUE(store_.evict(0).empty());
}

TEST_F(StoreTest, lists_files_and_parts) {
  add("org/tiny@refs%2Fpr%2F1", "sub/t-8w.mote");
  add("org/two", "a.mote");
  const std::string part = add("org/two", "b.mote.part", 300);
  std::ofstream(part + ".json") << R"({"etag": "", "sha256": "", "blob_id": "", "bytes": 1200})";
  std::ofstream(root_ + "/models/org/two/README.md") << "x";
  const std::vector<Entry> entries = store_.entries();
  EXPECT_EQ(names_of(entries), (Names{"org/tiny@refs/pr/1:sub/t-8w", "org/two:a", "org/two:b"}));
  EXPECT_TRUE(entries[0].is_whole && entries[0].manifest);
  EXPECT_FALSE(entries[2].is_whole);
  EXPECT_EQ(entries[2].bytes, 300);
  EXPECT_EQ(entries[2].total_bytes, 1200);
  EXPECT_EQ(names_of(store_.entries(Name{"org/two", "", ""})), (Names{"org/two:a", "org/two:b"}));
}

TEST_F(StoreTest, finds_what_a_name_means_and_notes_its_use) {
  const std::string path = add("org/tiny", "t-8w.mote", 10, 5000);
  EXPECT_EQ(store_.find("org/tiny")->path, path);
  EXPECT_LT(store_.entries()[0].last_used_s + 10, store_.find("org/tiny:8w")->last_used_s + 100);
  const auto now = std::filesystem::file_time_type::clock::now();
  EXPECT_LT(now - std::filesystem::last_write_time(path + ".json"), std::chrono::seconds(60));
  add("org/tiny", "t-4w.mote");
  EXPECT_NE(store_.find("org/tiny").status().message().find("say which: org/tiny:t-4w, org/tiny:t-8w"),
            std::string::npos);
  EXPECT_EQ(store_.find("org/tinny").status().message(),
            "the store has no model 'org/tinny': did you mean 'org/tiny'?");
  EXPECT_EQ(store_.find("tiny").status().code(), Code::kInvalidArgument);
  add("org/part", "p.mote.part");
  EXPECT_NE(store_.find("org/part").status().message().find("only a part"), std::string::npos);
}

TEST_F(StoreTest, damaged_manifests_are_none) {
  const std::string path = add("org/tiny", "t.mote");
  for (const char* damage : {"", "{", "[]", R"({"repo": 1})", R"({"bytes": "x"})"}) {
    std::ofstream(path + ".json") << damage;
    EXPECT_FALSE(store_.entries()[0].manifest) << damage;
  }
}

TEST_F(StoreTest, manifests_are_read_as_written) {
  Manifest manifest{"org/x",
                    "v1",
                    "c0",
                    "f.mote",
                    "download",
                    std::string(64, 'a'),
                    12,
                    "8w",
                    "qwen3",
                    "mit",
                    "2026-01-02T03:04:05+00:00",
                    "https://e.example/f.mote"};
  const std::string path = add("org/x", "f.mote");
  ASSERT_TRUE(write_manifest(path, manifest).ok());
  EXPECT_EQ(read_manifest(path)->json(), manifest.json());
}

TEST_F(StoreTest, removes_a_file_and_empty_folders) {
  add("org/two", "a.mote");
  add("org/two", "sub/b.mote");
  ASSERT_TRUE(store_.remove(store_.entries()[0]).ok());
  EXPECT_EQ(names_of(store_.entries()), Names{"org/two:sub/b"});
  ASSERT_TRUE(store_.remove(store_.entries()[0]).ok());
  EXPECT_TRUE(std::filesystem::is_empty(root_ + "/models"));
}

TEST_F(StoreTest, what_is_downloaded_to_is_not_removed) {
  add("org/tiny", "t.mote");
  const auto lock = store_.try_lock({"org/tiny", "", ""});
  ASSERT_TRUE(lock.ok() && lock->has_value());
  EXPECT_FALSE(store_.try_lock({"org/tiny", "", ""})->has_value());
  EXPECT_EQ(store_.remove(store_.entries()[0]).code(), Code::kInvalidState);
  EXPECT_TRUE(store_.evict(0).empty());
}

TEST_F(StoreTest, evicts_what_was_used_longest_ago) {
  add("org/new", "a.mote", 1000, 0);
  add("org/old", "b.mote", 1000, 3000);
  add("org/older", "c.mote", 1000, 9000);
  EXPECT_TRUE(store_.evict(3000).empty());
  EXPECT_EQ(names_of(store_.evict(2500)), Names{"org/older:c"});
  EXPECT_EQ(names_of(store_.evict(0)), (Names{"org/old:b", "org/new:a"}));
}

#if !defined(_WIN32)
TEST_F(StoreTest, what_is_open_is_not_evicted) {
  const std::string path = add("org/tiny", "t.mote");
  std::ofstream(path, std::ios::binary) << test::tiny_file();
  {
    const auto mapped = map(path);
    ASSERT_TRUE(mapped.ok());
    EXPECT_TRUE(store_.evict(0).empty());
  }
  EXPECT_EQ(store_.evict(0).size(), 1u);
}
#endif

}  // namespace
}  // namespace mote::store
