// Mapped files that are larger than the memory for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace mote {

// The least limit of a process's control groups and of those above them, version 1 or 2; INT64_MAX: none.
// groups: the text of /proc/PID/cgroup; root: where their files are, /sys/fs/cgroup.
int64_t group_memory_limit(const std::string& groups, const std::string& root);
// Memory that this process may fill: the machine's, or less in a container; 0: the system does not tell.
int64_t memory_limit_bytes();

// Has the system read what memory lacks of a part of a mapped file, in the background. A part whose first and last page
// are there counts as there: to ask that costs two system calls. Where the system does not tell, nothing is read.
void read_ahead(std::span<const std::byte> part);

}  // namespace mote
