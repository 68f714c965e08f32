#include "base/atomic_file.h"

#include <fcntl.h>
#include <io.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/open_file.h"
#include "base/replacement.h"
#include "base/windows.h"

namespace mote {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;  // of one call

// Where a symbolic link leads, if there is something; else the path as it is: a link that leads nowhere is refused.
std::string follow_links(const std::string& path) {
  const std::optional<FileInfo> info = info_of_name(path);
  if (!info.has_value() || info->kind != FileKind::kLink) return path;
  const windows::Handle target(::CreateFileW(windows::native_path(path).c_str(), FILE_READ_ATTRIBUTES,
                                             FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                             OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr));
  if (!target) return path;
  std::wstring name(::GetFinalPathNameByHandleW(target.get(), nullptr, 0, 0), L'\0');
  name.resize(::GetFinalPathNameByHandleW(target.get(), name.data(), static_cast<DWORD>(name.size()), 0));
  return name.empty() ? path : windows::to_utf8(name);
}

// Of a file that is open to nobody else. Without it the file goes with its last handle, however the process ends.
bool set_kept(HANDLE file, bool is_kept) {
  FILE_DISPOSITION_INFO info{};
  info.DeleteFile = is_kept ? FALSE : TRUE;
  return ::SetFileInformationByHandle(file, FileDispositionInfo, &info, sizeof info) != 0;
}

// Over what is there, at once.
bool rename(HANDLE file, const std::wstring& name) {
  const size_t name_bytes = name.size() * sizeof(wchar_t);
  std::vector<std::byte> buffer(sizeof(FILE_RENAME_INFO) + name_bytes);
  auto& info = *reinterpret_cast<FILE_RENAME_INFO*>(buffer.data());
  info.ReplaceIfExists = TRUE;
  info.FileNameLength = static_cast<DWORD>(name_bytes);
  std::copy(name.begin(), name.end(), info.FileName);
  return ::SetFileInformationByHandle(file, FileRenameInfo, &info, static_cast<DWORD>(buffer.size())) != 0;
}

std::wstring whole_path(const std::string& path) {
  const std::wstring native = windows::native_path(path);
  std::wstring whole(::GetFullPathNameW(native.c_str(), 0, nullptr, nullptr), L'\0');
  whole.resize(::GetFullPathNameW(native.c_str(), static_cast<DWORD>(whole.size()), whole.data(), nullptr));
  return whole;
}

}  // namespace

struct AtomicFile::State {
  std::string path;       // as it was given
  std::string target;     // where that leads
  bool is_named = false;  // what a killed process leaves of it stays
  FileDescriptor file;

  HANDLE handle() const { return reinterpret_cast<HANDLE>(::_get_osfhandle(file.get())); }
  Status failed(const char* what) const { return unwritable(path, what, windows::last_message()); }

  ~State() {
    if (file.get() >= 0 && is_named) (void)set_kept(handle(), false);
  }

  // Every file has a name here. While it is written nobody else can open it.
  Status open() {
    for (int i = 0; i < kMaxTemporaryNames; ++i) {
      MOTE_ASSIGN(const std::string name, temporary_name(target));
      windows::Handle opened(::CreateFileW(windows::native_path(name).c_str(), GENERIC_READ | GENERIC_WRITE | DELETE, 0,
                                           nullptr, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr));
      if (!opened && ::GetLastError() == ERROR_FILE_EXISTS) continue;
      if (!opened || (!is_named && !set_kept(opened.get(), false))) return failed("cannot be written");
      file = FileDescriptor(::_open_osfhandle(reinterpret_cast<intptr_t>(opened.get()), _O_RDWR | _O_BINARY));
      if (file.get() < 0) return unwritable(path, "cannot be written", "too many files are open");
      (void)opened.release();
      return {};
    }
    return unwritable(path, "cannot be written", "other processes write it too often");
  }

  Status write(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      DWORD written = 0;
      const auto count = static_cast<DWORD>(std::min(bytes.size(), kMostBytes));
      if (::WriteFile(handle(), bytes.data(), count, &written, nullptr) == 0) return failed("cannot be written");
      bytes = bytes.subspan(written);
    }
    return {};
  }

  Status commit() {
    if (::FlushFileBuffers(handle()) == 0) return failed("cannot be synced");
    MOTE_RETURN_IF_ERROR(check_target(path, target));
    if (!is_named && !set_kept(handle(), true)) return failed("cannot be replaced");
    if (!rename(handle(), whole_path(target))) {
      const Status status = failed("cannot be replaced");
      (void)set_kept(handle(), false);
      return status;
    }
    // A rename is written through when the file is: folders cannot be synced here.
    (void)::FlushFileBuffers(handle());
    is_named = false;
    file = FileDescriptor();
    return {};
  }
};

AtomicFile::AtomicFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
AtomicFile::AtomicFile(AtomicFile&&) noexcept = default;
AtomicFile& AtomicFile::operator=(AtomicFile&&) noexcept = default;
AtomicFile::~AtomicFile() = default;

// Who may read the file is what its folder says, as with any program's output.
Result<AtomicFile> AtomicFile::create(const std::string& path, Access, const Options& options) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->target = options.links == Links::kFollow ? follow_links(path) : path;
  state->is_named = options.temporary == Temporary::kNamed;
  MOTE_RETURN_IF_ERROR(check_target(path, state->target));
  for (const std::filesystem::path& left : temporary_files(state->target)) (void)::DeleteFileW(left.c_str());
  MOTE_RETURN_IF_ERROR(state->open());
  return AtomicFile(std::move(state));
}

Status AtomicFile::write(std::span<const std::byte> bytes) { return state_->write(bytes); }

Status AtomicFile::overwrite_start(std::span<const std::byte> bytes) {
  if (::SetFilePointerEx(state_->handle(), LARGE_INTEGER{}, nullptr, FILE_BEGIN) == 0)
    return state_->failed("cannot be written");
  return write(bytes);
}

int AtomicFile::descriptor() const { return state_->file.get(); }

Status AtomicFile::commit() { return state_->commit(); }

}  // namespace mote
