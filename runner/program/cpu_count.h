#pragma once

namespace mote {

// Physical cores that this process may use (affinity and a cgroup's quota respected), without a phone's slow ones; at
// least 1, at most 256.
int available_cores();

// What that is made of, for each system: cores by affinity, and those whose time a group of processes may use.
// 0: the system does not tell, or there is no limit.
int physical_cores();
int quota_cores();

}  // namespace mote
