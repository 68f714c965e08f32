#include "base/windows.h"

#include <cstddef>
#include <system_error>
#include <vector>

namespace mote::windows {
namespace {

constexpr size_t kOldLongest = MAX_PATH - 12;  // of a folder, which leaves room for a name

}  // namespace

std::optional<std::wstring> to_utf16(std::string_view text) {
  if (text.empty()) return std::wstring();
  const int bytes = static_cast<int>(text.size());
  const int count = ::MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text.data(), bytes, nullptr, 0);
  if (count <= 0) return std::nullopt;
  std::wstring wide(static_cast<size_t>(count), L'\0');
  ::MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text.data(), bytes, wide.data(), count);
  return wide;
}

std::string to_utf8(std::wstring_view text) {
  if (text.empty()) return {};
  const int units = static_cast<int>(text.size());
  const int count = ::WideCharToMultiByte(CP_UTF8, 0, text.data(), units, nullptr, 0, nullptr, nullptr);
  std::string bytes(static_cast<size_t>(count), '\0');
  ::WideCharToMultiByte(CP_UTF8, 0, text.data(), units, bytes.data(), count, nullptr, nullptr);
  return bytes;
}

std::wstring native_path(const std::string& path) {
  const std::optional<std::wstring> wide = to_utf16(path);
  if (!wide.has_value() || wide->size() < kOldLongest || wide->starts_with(L"\\\\")) return wide.value_or(L"");
  std::wstring whole(::GetFullPathNameW(wide->c_str(), 0, nullptr, nullptr), L'\0');
  whole.resize(::GetFullPathNameW(wide->c_str(), static_cast<DWORD>(whole.size()), whole.data(), nullptr));
  return L"\\\\?\\" + whole;
}

void for_each_record(LOGICAL_PROCESSOR_RELATIONSHIP kind,
                     const std::function<void(const SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX&)>& work) {
  DWORD bytes = 0;
  ::GetLogicalProcessorInformationEx(kind, nullptr, &bytes);
  std::vector<std::byte> buffer(bytes);
  auto* first = reinterpret_cast<SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX*>(buffer.data());
  if (bytes == 0 || ::GetLogicalProcessorInformationEx(kind, first, &bytes) == 0) return;
  for (DWORD at = 0; at < bytes;) {
    const auto& record = *reinterpret_cast<const SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX*>(buffer.data() + at);
    work(record);
    at += record.Size;
  }
}

std::string message_of(DWORD error) {
  const std::error_code code(static_cast<int>(error), std::system_category());
  const std::error_condition condition = code.default_error_condition();
  std::string text = condition.category() == std::generic_category() ? condition.message() : code.message();
  text.erase(text.find_last_not_of(" .\r\n") + 1);
  return text;
}

}  // namespace mote::windows
