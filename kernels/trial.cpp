#include "kernels/trial.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/memory.h"
#include "base/open_file.h"
#include "base/small_file.h"

namespace mote {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 7;
constexpr int64_t kSlice = int64_t{8} << 20;  // that a kernel reads in a round
constexpr int64_t kMostBytes = int64_t{128} << 20;
constexpr double kLeastGain = 0.03;
constexpr int64_t kMostRecord = int64_t{1} << 16;  // bytes of the file; an answer has some 150

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Twice what caches hold, in slices. Large pages, as weights and caches mostly lie in.
class TrialMemory {
 public:
  TrialMemory() : bytes_(std::clamp(2 * last_cache_bytes() / kSlice * kSlice, 4 * kSlice, kMostBytes)) {
    if (bytes_ > physical_memory_bytes() / 8) return;
    pages_ = reserve_large_pages(static_cast<size_t>(bytes_));
    if (pages_ != nullptr) std::memset(pages_.get(), 0x11, static_cast<size_t>(bytes_));
  }

  bool empty() const { return pages_ == nullptr; }
  // The one that has not been read for longest.
  std::span<std::byte> next() {
    const int64_t begin = next_;
    next_ = (next_ + kSlice) % bytes_;
    return {pages_.get() + begin, static_cast<size_t>(kSlice)};
  }

 private:
  int64_t bytes_, next_ = 0;
  ReservedPages pages_;
};

std::string key_of(const Kernel& usual, const Kernel& other, const WeightKind& format, const Trial& trial) {
  static const std::string cpu = cpu_name();  // which a virtual machine takes its time to tell
  return cpu + "; " + describe(format) + ", " + trial.work + "; " + std::string(usual.name) + " or " +
         std::string(other.name);
}

using Seconds = std::array<double, kRounds>;
struct Times {
  Seconds usual, other;
};

double median_gb_s(Seconds times) {
  std::sort(times.begin(), times.end());
  return static_cast<double>(kSlice) * 1e-9 / times[kRounds / 2];
}

// Copies of a trial's work, which run at once.
class Copies {
 public:
  explicit Copies(const Trial& trial) : runs_(static_cast<size_t>(trial.num_threads), trial.run) {}

  double seconds(const Kernel& kernel, TrialMemory& memory) {
    std::vector<std::span<std::byte>> slices;
    for (size_t i = 0; i < runs_.size(); ++i) slices.push_back(memory.next());
    std::vector<std::thread> threads;
    const Clock::time_point begin = Clock::now();
    for (size_t i = 1; i < runs_.size(); ++i) threads.emplace_back(std::ref(runs_[i]), kernel.functions, slices[i]);
    runs_[0](kernel.functions, slices[0]);
    for (std::thread& thread : threads) thread.join();
    return seconds_since(begin);
  }

 private:
  std::vector<decltype(Trial::run)> runs_;
};

// What each needs for a slice in rounds that they begin in turn; none if there is too little memory or time.
std::optional<Times> time_both(const Kernel& usual, const Kernel& other, const Trial& trial, double most_seconds) {
  TrialMemory memory;
  if (memory.empty()) return std::nullopt;
  Copies copies(trial);
  // Large pages may take long to find. A trial that has them is not given up for that, or each process would begin it.
  const Clock::time_point start = Clock::now();
  for (const Kernel* kernel : {&usual, &other}) copies.seconds(*kernel, memory);  // code and allocations
  Times times;
  for (size_t round = 0; round < kRounds; ++round) {
    if (seconds_since(start) > most_seconds) return std::nullopt;
    if (round % 2 == 0) times.usual[round] = copies.seconds(usual, memory);
    times.other[round] = copies.seconds(other, memory);
    if (round % 2 == 1) times.usual[round] = copies.seconds(usual, memory);
  }
  return times;
}

}  // namespace

bool wins(std::span<const double> other, std::span<const double> usual) {
  size_t won = 0;
  for (size_t i = 0; i < other.size(); ++i) won += other[i] <= usual[i] * (1 - kLeastGain) ? 1 : 0;
  return won + 1 >= other.size();
}

TrialRecord TrialRecord::of_user() {
  const auto folder = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  if (!folder("MOTE_CACHE_DIR").empty()) return TrialRecord((folder("MOTE_CACHE_DIR") / "kernels.txt").string());
  if (!folder("XDG_CACHE_HOME").empty()) return TrialRecord((folder("XDG_CACHE_HOME") / "mote/kernels.txt").string());
#if defined(_WIN32)
  const std::filesystem::path home = folder("LOCALAPPDATA");
  return TrialRecord(home.empty() ? std::string() : (home / "mote/kernels.txt").string());
#elif defined(__APPLE__)
  const std::filesystem::path home = folder("HOME");
  return TrialRecord(home.empty() ? std::string() : (home / "Library/Caches/mote/kernels.txt").string());
#else
  const std::filesystem::path home = folder("HOME");
  return TrialRecord(home.empty() ? std::string() : (home / ".cache/mote/kernels.txt").string());
#endif
}

std::string TrialRecord::find(const std::string& key) const {
  const std::string text = "\n" + text_of_small_file(path_), start = "\n" + key + "\t";
  const size_t found = text.rfind(start);
  if (path_.empty() || found == std::string::npos) return {};
  const size_t begin = found + start.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

void TrialRecord::keep(const std::string& key, std::string_view name) const {
  if (path_.empty()) return;
  std::error_code ignored;
  const std::filesystem::path path(path_);
  std::filesystem::create_directories(path.parent_path(), ignored);
  const auto size = std::filesystem::file_size(path, ignored);
  const bool is_full = !ignored && size > static_cast<uintmax_t>(kMostRecord);
  if (is_full) std::filesystem::remove(path, ignored);
  // In one piece, so that processes do not write into each other's lines.
  append_to_file(path_, key + '\t' + std::string(name) + '\n');
}

const Kernel* KernelTrials::faster(const Kernel& usual, const Kernel& other, const WeightKind& format,
                                   const Trial& trial) {
  const std::lock_guard lock(mutex_);
  const std::string key = key_of(usual, other, format, trial);
  const Kernel*& answer = answers_[key];
  if (answer == nullptr) answer = find_faster(usual, other, key, trial);
  return answer;
}

const Kernel* KernelTrials::find_faster(const Kernel& usual, const Kernel& other, const std::string& key,
                                        const Trial& trial) {
  if (const std::string name = record_.find(key); !name.empty()) return name == other.name ? &other : &usual;
  if (seconds_ <= 0) return &usual;
  const Clock::time_point start = Clock::now();
  const std::optional<Times> times = time_both(usual, other, trial, seconds_);
  seconds_ -= seconds_since(start);
  if (!times.has_value()) return &usual;
  const Kernel* winner = wins(times->other, times->usual) ? &other : &usual;
  MOTE_LOG_LINE(kInfo, "a trial of %.1f ms: %s: %.1f and %.1f GB/s", 1e3 * seconds_since(start), key.c_str(),
                median_gb_s(times->usual), median_gb_s(times->other));
  record_.keep(key, winner->name);
  return winner;
}

}  // namespace mote
