// What was entered in earlier chats: a file with an entry a line.
#pragma once

#include <string>
#include <vector>

namespace mote::cli {

// Where the history is kept: under XDG_STATE_HOME, else ~/.local/state; "": nowhere, because there is no home.
std::string default_history_path();

class History {
 public:
  static constexpr size_t kMaxEntries = 1000;

  History() = default;  // none
  // Reads what is there, the latest kMaxEntries; a file that has many more is cut to them.
  explicit History(std::string path);

  const std::vector<std::string>& entries() const { return entries_; }
  // Empty entries and those equal to the last are left out. The file is for its owner only; that it cannot be written
  // is no error.
  void add(const std::string& entry);

 private:
  std::string path_;
  std::vector<std::string> entries_;
};

}  // namespace mote::cli
