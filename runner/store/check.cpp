#include "runner/store/check.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/memory.h"
#include "runner/program/program.h"

namespace mote::store {
namespace {

bool is_final(Code code) {
  return code == Code::kUnsupportedBackend || code == Code::kUnsupportedOp || code == Code::kUnsupportedVersion;
}

}  // namespace

Status check_program(const std::string& name, std::span<const std::byte> first_bytes, int64_t file_bytes) {
  // Memory of the size of the file, of which only the pages of the program are ever made.
  const auto size = static_cast<size_t>(file_bytes);
  const ReservedPages pages(reserve_addresses(size), ReleasePages{size});
  if (pages == nullptr) return {};
  std::memcpy(pages.get(), first_bytes.data(), std::min(first_bytes.size(), size));
  MOTE_ASSIGN(Mapped mapped, map(MemoryBytes{name, {pages.get(), size}, nullptr}));
  MOTE_ASSIGN(Verified verified, verify(std::move(mapped)));
  const auto shared = std::make_shared<const Verified>(std::move(verified));
  Status refusal;
  for (const std::string_view target : targets_of(shared->program())) {
    const Status status = bind(shared, target, {.purpose = Purpose::kDescribe}).status();
    if (!is_final(status.code())) return {};
    if (refusal.ok()) refusal = status;
  }
  return refusal;
}

Status check_contents(const std::string& path) {
  MOTE_ASSIGN(Mapped mapped, map(path, LoadMode::kMapUnguarded));
  MOTE_ASSIGN(const Verified verified, verify(std::move(mapped)));
  return check_segments(verified);
}

}  // namespace mote::store
