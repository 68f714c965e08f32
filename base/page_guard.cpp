#include "base/page_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__SANITIZE_THREAD__)
#include <sys/syscall.h>
#endif

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>

namespace mote {

// The handler may run in any thread at any time, so it reads the regions without a lock. They are used again and never
// freed; the version of one is odd while its bounds change. That of a page that is being read does not change.
struct PageGuard::Region {
  std::atomic<unsigned> version{0};
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};  // 0: free
  std::atomic<bool> has_lost{false};
  Region* next = nullptr;

  void set(uintptr_t new_begin, uintptr_t new_end) {
    version.fetch_add(1);
    begin.store(new_begin);
    end.store(new_end);
    version.fetch_add(1);
  }

  // Where it ends, if the address is in it; else 0.
  uintptr_t end_for(uintptr_t address) const {
    const unsigned before = version.load();
    const uintptr_t first = begin.load(), last = end.load();
    const bool is_stable = before % 2 == 0 && version.load() == before;
    return is_stable && address >= first && address < last ? last : 0;
  }
};

namespace {

constinit std::mutex mutex;  // of installing, and of taking and giving back regions
bool is_installed = false;
uintptr_t page_bytes = 0;
struct sigaction previous{};

}  // namespace

namespace {

bool map_zeros(uintptr_t page, size_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer takes mmap for a write to the pages, which other threads read.
  return ::syscall(SYS_mmap, page, bytes, PROT_READ, kFlags, -1, 0) != -1;
#else
  return ::mmap(reinterpret_cast<void*>(page), bytes, PROT_READ, kFlags, -1, 0) != MAP_FAILED;
#endif
}

}  // namespace

struct PageGuardRegions {
  static inline std::atomic<PageGuard::Region*> first{nullptr};

  // Whether the page can be read now.
  static bool replace(uintptr_t address) {
    for (PageGuard::Region* region = first.load(); region != nullptr; region = region->next) {
      const uintptr_t end = region->end_for(address);
      if (end == 0) continue;
      const uintptr_t page = address & ~(page_bytes - 1);
      region->has_lost.store(true);  // before anyone can read the zeros
      return map_zeros(page, end - page);
    }
    return false;
  }

  static PageGuard::Region* take(std::span<const std::byte> pages) {
    const std::lock_guard lock(mutex);
    install();
    PageGuard::Region* region = first.load();
    while (region != nullptr && region->end.load() != 0) region = region->next;
    if (region == nullptr) {
      region = new PageGuard::Region;
      region->next = first.load();
      first.store(region);
    }
    region->has_lost.store(false);
    const auto begin = reinterpret_cast<uintptr_t>(pages.data());
    region->set(begin, (begin + pages.size() + page_bytes - 1) & ~(page_bytes - 1));
    return region;
  }

  static void give_back(PageGuard::Region* region) {
    const std::lock_guard lock(mutex);
    region->set(0, 0);
  }

 private:
  static void install();
};

namespace {

void pass_on(int signal, siginfo_t* info, void* context) {
  const bool is_sent = info->si_code <= 0;
  // A handler that was installed above this one sends the signal again once it has reported a fault (as Python's
  // faulthandler does). The instruction is repeated, and if it fails again that is no signal that was sent.
  if (is_sent && info->si_pid == ::getpid()) return;
  if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(signal, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(signal);
  if (is_sent && previous.sa_handler == SIG_IGN) return;
  struct sigaction ending{};
  ending.sa_handler = SIG_DFL;
  ::sigaction(signal, &ending, nullptr);
  if (is_sent) ::raise(signal);
}

extern "C" void handle_lost_page(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool is_fault = info->si_code > 0;
  if (!is_fault || !PageGuardRegions::replace(reinterpret_cast<uintptr_t>(info->si_addr)))
    pass_on(signal, info, context);
  errno = error;
}

}  // namespace

void PageGuardRegions::install() {
  if (is_installed) return;
  page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  ::sigaction(SIGBUS, nullptr, &previous);  // known before the handler can run
  struct sigaction action{};
  action.sa_sigaction = handle_lost_page;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  is_installed = ::sigaction(SIGBUS, &action, nullptr) == 0;
}

PageGuard::PageGuard(std::span<const std::byte> pages) : region_(PageGuardRegions::take(pages)) {}
PageGuard::PageGuard(PageGuard&& other) noexcept : region_(std::exchange(other.region_, nullptr)) {}
PageGuard& PageGuard::operator=(PageGuard&& other) noexcept {
  std::swap(region_, other.region_);
  return *this;
}
PageGuard::~PageGuard() {
  if (region_ != nullptr) PageGuardRegions::give_back(region_);
}

bool PageGuard::has_lost() const { return region_ != nullptr && region_->has_lost.load(); }

}  // namespace mote
