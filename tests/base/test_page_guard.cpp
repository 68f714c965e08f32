// A file that becomes shorter under its mapping.
#include "base/page_guard.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace mote {
namespace {

constexpr size_t kNumPages = 4;

class MappedFile {
 public:
  explicit MappedFile(std::byte filling = std::byte{7}) : path_(testing::TempDir() + "guard_XXXXXX") {
    descriptor_ = ::mkstemp(path_.data());
    const std::vector<std::byte> content(size(), filling);
    if (::write(descriptor_, content.data(), size()) != static_cast<ssize_t>(size())) std::abort();
    data_ = static_cast<std::byte*>(::mmap(nullptr, size(), PROT_READ, MAP_PRIVATE, descriptor_, 0));
  }
  ~MappedFile() {
    ::munmap(data_, size());
    ::close(descriptor_);
    std::filesystem::remove(path_);
  }

  static size_t page() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }
  static size_t size() { return kNumPages * page(); }
  std::span<const std::byte> bytes() const { return {data_, size()}; }
  // Read anew each time.
  std::byte at(size_t page_index) const { return *static_cast<volatile std::byte*>(data_ + page_index * page()); }
  void cut(size_t num_pages) const {
    if (::ftruncate(descriptor_, static_cast<off_t>(num_pages * page())) != 0) std::abort();
  }

 private:
  std::string path_;
  int descriptor_;
  std::byte* data_;
};

TEST(PageGuard, pages_behind_the_new_end_read_as_zeros_and_the_guard_says_so) {
  const MappedFile file, other;
  const PageGuard guard(file.bytes()), of_other(other.bytes());
  EXPECT_EQ(file.at(3), std::byte{7});
  EXPECT_FALSE(guard.has_lost());
  file.cut(2);
  EXPECT_EQ(file.at(1), std::byte{7});
  EXPECT_FALSE(guard.has_lost());
  EXPECT_EQ(file.at(2), std::byte{0});
  EXPECT_EQ(file.at(3), std::byte{0});
  EXPECT_EQ(file.at(1), std::byte{7});
  EXPECT_TRUE(guard.has_lost());
  EXPECT_FALSE(of_other.has_lost());
  EXPECT_EQ(other.at(3), std::byte{7});
}

TEST(PageGuard, any_thread_may_meet_a_lost_page_first) {
  const MappedFile file;
  const PageGuard guard(file.bytes());
  file.cut(0);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i) threads.emplace_back([&, i] { EXPECT_EQ(file.at(i % kNumPages), std::byte{0}); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(guard.has_lost());
}

TEST(PageGuard, moves_and_is_used_again_without_what_was_lost_before) {
  for (int i = 0; i < 3; ++i) {
    const MappedFile file;
    PageGuard first(file.bytes());
    const PageGuard guard = std::move(first);
    EXPECT_FALSE(first.has_lost());  // NOLINT(bugprone-use-after-move)
    EXPECT_FALSE(guard.has_lost());
    file.cut(1);
    EXPECT_EQ(file.at(1), std::byte{0});
    EXPECT_TRUE(guard.has_lost());
  }
}

void read_without_a_guard() {
  const MappedFile file;
  { const PageGuard guard(file.bytes()); }
  file.cut(0);
  file.at(0);
}

TEST(PageGuard, that_is_gone_guards_no_more) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(read_without_a_guard(), "");
}

// A handler of an application that was there before.
void end_with_7(int, siginfo_t*, void*) { ::_exit(7); }

void handle(void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action{};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

void read_of_both(const MappedFile& guarded, const MappedFile& other) {
  const PageGuard guard(guarded.bytes());
  guarded.cut(0);
  guarded.at(0);
  other.cut(0);
  other.at(0);
}

TEST(PageGuard, passes_on_what_is_not_its_page) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT((handle(end_with_7), read_of_both(MappedFile(), MappedFile())), testing::ExitedWithCode(7), "");
}

struct sigaction below;

// As Python's faulthandler does.
void report_and_raise(int signal, siginfo_t*, void*) {
  ::sigaction(signal, &below, nullptr);
  ::raise(signal);
}

void end_with_8_if_it_is_guarded() {
  const MappedFile file;
  const PageGuard guard(file.bytes());
  ::sigaction(SIGBUS, nullptr, &below);
  handle(report_and_raise);
  file.cut(0);
  ::_exit(file.at(0) == std::byte{0} && guard.has_lost() ? 8 : 1);
}

TEST(PageGuard, works_below_a_handler_that_raises_the_signal_again) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_with_8_if_it_is_guarded(), testing::ExitedWithCode(8), "");
}

}  // namespace
}  // namespace mote
