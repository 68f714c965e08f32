#include "runner/cli/chat/history.h"

#include <filesystem>

#include "base/open_file.h"
#include "base/path.h"
#include "runner/cli/chat/conversation_file.h"
#include "runner/cli/handles.h"
#include "runner/cli/system.h"

namespace mote::cli {
namespace {

// An entry of several lines is one line of the file.
std::string escaped(const std::string& entry) {
  std::string text;
  for (const char c : entry) {
    if (c == '\\' || c == '\n') text += '\\';
    text += c == '\n' ? 'n' : c;
  }
  return text;
}

std::string unescaped(const std::string& line) {
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool is_escape = line[i] == '\\' && i + 1 < line.size();
    if (is_escape) ++i;
    text += is_escape && line[i] == 'n' ? '\n' : line[i];
  }
  return text;
}

std::vector<std::string> read_entries(const std::string& path) {
  std::vector<std::string> entries;
  std::string text;
  try {
    text = read_text_file(path);
  } catch (const InputError&) {
    return entries;  // the first chat
  }
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) entries.push_back(unescaped(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return entries;
}

}  // namespace

std::string default_history_path() {
  const std::string folder = state_folder();
  return folder.empty() ? "" : to_text(to_path(folder) / "chat_history");
}

History::History(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  entries_ = read_entries(path_);
  if (entries_.size() <= kMaxEntries) return;
  const bool is_long = entries_.size() > 2 * kMaxEntries;
  entries_.erase(entries_.begin(), entries_.end() - static_cast<ptrdiff_t>(kMaxEntries));
  if (!is_long) return;
  std::string text;
  for (const std::string& entry : entries_) text += escaped(entry) + "\n";
  try {
    write_text_file(path_, text);
  } catch (const InputError&) { path_.clear(); }
}

void History::add(const std::string& entry) {
  if (entry.empty() || (!entries_.empty() && entries_.back() == entry)) return;
  entries_.push_back(entry);
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(to_path(path_).parent_path(), ignored);
  if (!append_to_file(path_, escaped(entry) + "\n")) path_.clear();
}

}  // namespace mote::cli
