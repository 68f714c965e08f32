// Which of two kernels that give the same bits is the faster one on this machine: tried, not remembered from another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/kernel.h"

namespace mote {

// A piece of a kernel's work.
struct Trial {
  std::string work;  // what it is; what is found holds for all such work of the same format
  // Runs it once with these functions of the role, whose weights or caches are read from this memory, all of it and in
  // order. The memory holds small numbers in every format.
  std::function<void(const void* functions, std::span<std::byte> memory)> run;
  int num_threads = 1;  // that run a copy of it at once
};

// What has been found out, on the disk: one answer a line, "KEY<tab>NAME of the faster kernel".
class TrialRecord {
 public:
  // path: empty: none. A file that cannot be read or written is as good as none.
  explicit TrialRecord(std::string path) : path_(std::move(path)) {}
  // In MOTE_CACHE_DIR or, without it, the folder of caches that the system gives the user; else none.
  static TrialRecord of_user();

  // The name that was kept last under the key; empty: none.
  std::string find(const std::string& key) const;
  void keep(const std::string& key, std::string_view name) const;

 private:
  std::string path_;
};

// Tries kernels until so many seconds are spent. Thread safety: any thread; one trial at a time.
class KernelTrials {
 public:
  explicit KernelTrials(TrialRecord record, double seconds = 0.1) : record_(std::move(record)), seconds_(seconds) {}

  // Either the usual kernel, or the other where it wins nearly every one of some rounds, in each of which both read
  // memory that no cache holds. The answer is kept in the record. Where time or memory does not suffice, the usual one.
  const Kernel* faster(const Kernel& usual, const Kernel& other, const WeightKind& format, const Trial& trial);

 private:
  const Kernel* find_faster(const Kernel& usual, const Kernel& other, const std::string& key, const Trial& trial);

  std::mutex mutex_;
  TrialRecord record_;
  double seconds_;                                // that are left
  std::map<std::string, const Kernel*> answers_;  // by key, whether they were tried or not
};

// The faster of two by the seconds of rounds: `other` where it needs at most 0.97 times the time of `usual` in all
// rounds but one. Both have as many.
bool wins(std::span<const double> other, std::span<const double> usual);

}  // namespace mote
