// The history of what was entered in a chat.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "runner/cli/chat/history.h"

namespace mote::cli {
namespace {

class HistoryFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "mote_history_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    path_ = (folder_ / "below" / "history").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(HistoryFile, entries_come_back) {
  {
    History history(path_);
    for (const char* entry : {"one", "", "two\nlines \\n", "two\nlines \\n", "\xc3\xa9"}) history.add(entry);
  }
  EXPECT_EQ(History(path_).entries(), (std::vector<std::string>{"one", "two\nlines \\n", "\xc3\xa9"}));
}

#if defined(_WIN32)
TEST_F(HistoryFile, lies_where_the_system_keeps_state) {
  EXPECT_TRUE(default_history_path().ends_with("\\AppData\\Local\\mote\\chat_history")) << default_history_path();
}
#else
TEST_F(HistoryFile, is_its_owners_alone) {
  History(path_).add("one");
  struct stat about{};
  ASSERT_EQ(stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_F(HistoryFile, lies_where_the_system_keeps_state) {
  setenv("XDG_STATE_HOME", folder_.c_str(), 1);
  EXPECT_EQ(default_history_path(), folder_ / "mote/chat_history");
  setenv("XDG_STATE_HOME", "relative", 1);
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(default_history_path(), "/home/me/.local/state/mote/chat_history");
}
#endif

TEST_F(HistoryFile, is_cut_when_it_is_long) {
  std::filesystem::create_directories(folder_ / "below");
  {
    std::ofstream file(path_, std::ios::binary);
    for (size_t i = 0; i < 2 * History::kMaxEntries + 1; ++i) file << i << "\n";
  }
  const History history(path_);
  EXPECT_EQ(history.entries().size(), History::kMaxEntries);
  EXPECT_EQ(history.entries().back(), std::to_string(2 * History::kMaxEntries));
  EXPECT_EQ(History(path_).entries().front(), std::to_string(History::kMaxEntries + 1));
}

TEST_F(HistoryFile, a_place_where_none_can_be_written_is_no_error) {
  History history("/dev/null/history");
  history.add("one");
  EXPECT_EQ(history.entries().size(), 1u);
}

}  // namespace
}  // namespace mote::cli
