#include <fcntl.h>
#include <io.h>
#include <stdlib.h>

#include <algorithm>

#include "base/open_file.h"
#include "base/windows.h"

namespace mote {
namespace {

constexpr DWORD kShareAll = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
constexpr size_t kMostBytes = size_t{1} << 30;  // of one call

uint64_t join(DWORD high, DWORD low) { return (uint64_t{high} << 32) | low; }

// Whether a name leads elsewhere: a symbolic link or a junction, and not, say, a file that a cloud keeps.
bool is_link(HANDLE file) {
  FILE_ATTRIBUTE_TAG_INFO info{};
  return ::GetFileInformationByHandleEx(file, FileAttributeTagInfo, &info, sizeof info) != 0 &&
         (info.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0 && IsReparseTagNameSurrogate(info.ReparseTag);
}

std::optional<FileInfo> describe(HANDLE file) {
  FileInfo result;
  const DWORD type = ::GetFileType(file);
  if (type == FILE_TYPE_PIPE || type == FILE_TYPE_CHAR) {
    result.kind = type == FILE_TYPE_PIPE ? FileKind::kPipe : FileKind::kDevice;
    return result;
  }
  BY_HANDLE_FILE_INFORMATION info{};
  if (file == INVALID_HANDLE_VALUE || type != FILE_TYPE_DISK || ::GetFileInformationByHandle(file, &info) == 0)
    return std::nullopt;
  if ((info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0) result.kind = FileKind::kFolder;
  if (is_link(file)) result.kind = FileKind::kLink;
  result.bytes = static_cast<int64_t>(join(info.nFileSizeHigh, info.nFileSizeLow));
  const uint64_t ticks = join(info.ftLastWriteTime.dwHighDateTime, info.ftLastWriteTime.dwLowDateTime);  // of 100 ns
  result.identity = {info.dwVolumeSerialNumber, join(info.nFileIndexHigh, info.nFileIndexLow), result.bytes,
                     static_cast<int64_t>(ticks / 10'000'000), static_cast<int64_t>(ticks % 10'000'000 * 100)};
  return result;
}

// Folders too, so that it can be said what they are.
windows::Handle open_handle(const std::string& path, DWORD access, DWORD flags) {
  return windows::Handle(::CreateFileW(windows::native_path(path).c_str(), access, kShareAll, nullptr, OPEN_EXISTING,
                                       FILE_FLAG_BACKUP_SEMANTICS | flags, nullptr));
}

Status unopened(const std::string& path) {
  const DWORD error = ::GetLastError();
  const bool is_missing = error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND ||
                          error == ERROR_INVALID_NAME || error == ERROR_BAD_PATHNAME || error == ERROR_DIRECTORY;
  return {is_missing ? Code::kFileNotFound : Code::kFileUnreadable,
          format("%s: cannot be opened: %s", path.c_str(),
                 is_missing ? "No such file or directory" : windows::message_of(error).c_str())};
}

Result<FileDescriptor> to_descriptor(const std::string& path, windows::Handle file) {
  FileDescriptor descriptor(::_open_osfhandle(reinterpret_cast<intptr_t>(file.get()), _O_RDONLY | _O_BINARY));
  MOTE_REQUIRE(descriptor.get() >= 0, Code::kFileUnreadable, "%s: cannot be opened: too many files are open",
               path.c_str());
  (void)file.release();  // the descriptor closes it
  return descriptor;
}

HANDLE handle_of(int descriptor) {
  if (descriptor < 0) return INVALID_HANDLE_VALUE;
#if defined(_UCRT)  // which ends the process for a descriptor that is not open, unless it is told not to
  const auto before = ::_set_thread_local_invalid_parameter_handler(
      [](const wchar_t*, const wchar_t*, const wchar_t*, unsigned, uintptr_t) {});
  const intptr_t handle = ::_get_osfhandle(descriptor);
  ::_set_thread_local_invalid_parameter_handler(before);
#else
  const intptr_t handle = ::_get_osfhandle(descriptor);
#endif
  return reinterpret_cast<HANDLE>(handle);
}

ReadBytes read(HANDLE file, std::span<std::byte> to, OVERLAPPED* place) {
  DWORD count = 0;
  const auto bytes = static_cast<DWORD>(std::min(to.size(), kMostBytes));
  if (::ReadFile(file, to.data(), bytes, &count, place) != 0) return {count, ""};
  const DWORD error = ::GetLastError();
  const bool is_end = error == ERROR_HANDLE_EOF || error == ERROR_BROKEN_PIPE;
  return {0, is_end ? "" : windows::message_of(error)};
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::_close(number_);
}

Result<OpenedFile> open_regular_file(const std::string& path, Links links) {
  windows::Handle file = open_handle(path, GENERIC_READ, links == Links::kRefuse ? FILE_FLAG_OPEN_REPARSE_POINT : 0);
  if (file && links == Links::kRefuse) {
    MOTE_REQUIRE(!is_link(file.get()), Code::kFileUnreadable, "%s: cannot be opened: it is a symbolic link",
                 path.c_str());
    FILE_ATTRIBUTE_TAG_INFO info{};
    const bool is_reparsed =
        ::GetFileInformationByHandleEx(file.get(), FileAttributeTagInfo, &info, sizeof info) != 0 &&
        (info.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0;
    if (is_reparsed) file = open_handle(path, GENERIC_READ, 0);
  }
  if (!file) return unopened(path);
  const std::optional<FileInfo> info = describe(file.get());
  MOTE_REQUIRE(info.has_value(), Code::kFileUnreadable, "%s: cannot be read: %s", path.c_str(),
               windows::last_message().c_str());
  MOTE_RETURN_IF_ERROR(require_regular(path, info->kind));
  MOTE_ASSIGN(FileDescriptor descriptor, to_descriptor(path, std::move(file)));
  return OpenedFile{std::move(descriptor), *info};
}

Result<FileDescriptor> open_any_file(const std::string& path) {
  windows::Handle file(::CreateFileW(windows::native_path(path).c_str(), GENERIC_READ, kShareAll, nullptr,
                                     OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr));
  if (!file) return unopened(path);
  return to_descriptor(path, std::move(file));
}

bool append_to_file(const std::string& path, std::string_view text) {
  const windows::Handle file(::CreateFileW(windows::native_path(path).c_str(), FILE_APPEND_DATA, kShareAll, nullptr,
                                           OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, nullptr));
  DWORD count = 0;
  return file && ::WriteFile(file.get(), text.data(), static_cast<DWORD>(text.size()), &count, nullptr) != 0 &&
         count == text.size();
}

std::optional<uint32_t> this_user() { return std::nullopt; }

std::optional<FileInfo> info_of(int descriptor) { return describe(handle_of(descriptor)); }

std::optional<FileInfo> info_of_name(const std::string& path) {
  const windows::Handle file = open_handle(path, FILE_READ_ATTRIBUTES, FILE_FLAG_OPEN_REPARSE_POINT);
  return file ? describe(file.get()) : std::nullopt;
}

FileDescriptor duplicate(int descriptor) {
  return FileDescriptor(handle_of(descriptor) == INVALID_HANDLE_VALUE ? -1 : ::_dup(descriptor));
}

ReadBytes read_some(int descriptor, std::span<std::byte> to) { return read(handle_of(descriptor), to, nullptr); }

ReadBytes read_some_at(int descriptor, int64_t offset, std::span<std::byte> to) {
  const HANDLE file = handle_of(descriptor);
  OVERLAPPED place{};
  place.Offset = static_cast<DWORD>(offset);
  place.OffsetHigh = static_cast<DWORD>(static_cast<uint64_t>(offset) >> 32);
  LARGE_INTEGER before{};  // a read moves the place from which the next one goes on, wherever it read
  const bool has_place = ::SetFilePointerEx(file, {}, &before, FILE_CURRENT) != 0;
  ReadBytes result = read(file, to, &place);
  if (has_place) (void)::SetFilePointerEx(file, before, nullptr, FILE_BEGIN);
  return result;
}

}  // namespace mote
