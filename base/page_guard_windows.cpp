// Windows lets nobody shorten a file while it is mapped, so there is nothing to guard against. A disk or a server that
// fails ends the process (EXCEPTION_IN_PAGE_ERROR), because no system call puts zeros in place of some pages of a view;
// LoadMode::kRead is for those.
#include "base/page_guard.h"

#include <utility>

namespace mote {

PageGuard::PageGuard(std::span<const std::byte>) {}
PageGuard::PageGuard(PageGuard&& other) noexcept : region_(std::exchange(other.region_, nullptr)) {}
PageGuard& PageGuard::operator=(PageGuard&& other) noexcept {
  std::swap(region_, other.region_);
  return *this;
}
PageGuard::~PageGuard() = default;

bool PageGuard::has_lost() const { return false; }

}  // namespace mote
