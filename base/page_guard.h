// Mapped files that become shorter while they are read.
#pragma once

#include <cstddef>
#include <span>

namespace mote {

// While it lives, a page of a mapped file that the system cannot read (SIGBUS: the file became shorter, or its disk
// fails) is not the end of the process: that page and those behind it read as zeros from then on, and the guard says
// so. The first guard installs a handler of SIGBUS for the whole process, which passes on what is no guard's page to
// the handler that was there. An application that installs one of its own later must keep it reachable in the same way,
// or restore it and send the signal to its own process again, as Python's faulthandler does.
// Thread safety: `has_lost` any thread.
class PageGuard {
 public:
  PageGuard() = default;  // guards nothing
  // pages: of one mapping, from its first on; must stay mapped for as long as this lives.
  explicit PageGuard(std::span<const std::byte> pages);
  PageGuard(PageGuard&& other) noexcept;
  PageGuard& operator=(PageGuard&& other) noexcept;
  ~PageGuard();

  // Whether a page could not be read. Whoever used the pages since asks this before the result is used.
  bool has_lost() const;

 private:
  struct Region;
  friend struct PageGuardRegions;
  Region* region_ = nullptr;
};

}  // namespace mote
