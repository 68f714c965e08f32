#pragma once

namespace mote {

// Physical cores that this process may use (affinity and a cgroup's quota respected); at least 1, at most 256.
int available_cores();

}  // namespace mote
