#include "runner/program/other_files.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/path.h"

namespace mote {
namespace {

struct Known {
  std::string_view begin;
  const char* says;
};

constexpr const char* kExport =
    "'mote export CHECKPOINT', a folder, a GGUF file or a name on the hub, makes a .mote file";

constexpr Known kCheckpoints[] = {
    {"GGUF", "a GGUF file"},
    {{"PK\x03\x04", 4}, "a zip archive, or weights of PyTorch"},
};
constexpr Known kOthers[] = {
    {{"\x1f\x8b", 2}, "compressed with gzip: unpack it"},
    {"version https://git-lfs", "a Git LFS pointer, a note of where the file is: fetch the file with 'git lfs pull'"},
    {"MOTESESS", "a saved session: give the model, and this file with --load-session"},
    {"MOTEXNN", "a cache of packed weights: give the model that it lies beside"},
};

bool is_web_page(std::string_view text) {
  std::string begin(text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()), 9));
  std::ranges::transform(begin, begin.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return begin == "<!doctype" || begin.starts_with("<html");
}

// Eight bytes of length, then that much JSON.
bool is_safetensors(std::string_view text) {
  uint64_t length = 0;
  if (text.size() < sizeof(length) + 1) return false;
  std::memcpy(&length, text.data(), sizeof(length));
  return length >= 2 && length <= text.size() - sizeof(length) && text[sizeof(length)] == '{';
}

}  // namespace

std::string what_else(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  for (const Known& known : kCheckpoints) {
    if (text.starts_with(known.begin)) return format("it is %s; %s", known.says, kExport);
  }
  for (const Known& known : kOthers) {
    if (text.starts_with(known.begin)) return std::string("it is ") + known.says;
  }
  if (is_web_page(text)) return "it is a web page: the link leads to a page about the file and not to the file itself";
  if (is_safetensors(text)) return format("it is a safetensors file, weights of a checkpoint; %s", kExport);
  return format("the first 8 bytes are not MOTE\\r\\n\\x1a\\n; %s", kExport);
}

Status with_advice(const std::string& path, const Status& status) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(to_path(path), ignored);
  return is_folder ? Status(status.code(), status.message() + "; " + kExport) : status;
}

}  // namespace mote
