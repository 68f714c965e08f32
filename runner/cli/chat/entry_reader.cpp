#include "runner/cli/chat/entry_reader.h"

#include <algorithm>

namespace mote::cli {
namespace {

constexpr const char* kPrompt = "> ";
constexpr const char* kFurtherPrompt = ". ";
constexpr std::string_view kFence = "\"\"\"";
constexpr std::string_view kSpace = " \t\r\n";

bool is_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

}  // namespace

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

Command parse_command(const std::string& text) {
  if (!text.starts_with('/')) return {};
  const auto end = std::find_if_not(text.begin() + 1, text.end(), is_letter);
  const bool is_name = end != text.begin() + 1 && (end == text.end() || kSpace.find(*end) != kSpace.npos);
  if (!is_name && text != "/?") return {};
  if (text == "/?") return {"help", ""};
  return {std::string(text.begin() + 1, end), trimmed(std::string(end, text.end()))};
}

Entry EntryReader::read() {
  std::string text;
  while (true) {
    const InputLine line = input_.read_line(text.empty() ? kPrompt : kFurtherPrompt);
    if (line.event == InputEvent::kInterrupt) return {line.event, "", false};
    if (line.event == InputEvent::kEnd) {
      const bool has_text = !trimmed(text).empty();
      return {has_text ? InputEvent::kLine : InputEvent::kEnd, trimmed(text), false};
    }
    if (text.empty() && trimmed(line.text).starts_with(kFence))
      return read_block(trimmed(line.text).substr(kFence.size()));
    text += line.text;
    if (!text.ends_with('\\')) break;
    text.back() = '\n';
  }
  text = trimmed(text);
  input_.remember(text);
  return {InputEvent::kLine, text, false};
}

// opening: what follows """ in the first line.
Entry EntryReader::read_block(const std::string& opening) {
  std::string text = opening;
  const auto ends = [&] { return text.ends_with(kFence); };
  bool is_first = opening.empty();
  while (!ends()) {
    const InputLine line = input_.read_line(kFurtherPrompt);
    if (line.event == InputEvent::kInterrupt) return {line.event, "", false};
    if (line.event == InputEvent::kEnd) return {InputEvent::kLine, text, true};
    if (!is_first) text += '\n';
    is_first = false;
    text += line.text;
    while (text.ends_with(' ') && trimmed(text).ends_with(kFence)) text.pop_back();
  }
  text.resize(text.size() - kFence.size());
  if (text.ends_with('\n')) text.pop_back();
  input_.remember(std::string(kFence) + text + std::string(kFence));
  return {InputEvent::kLine, text, true};
}

}  // namespace mote::cli
