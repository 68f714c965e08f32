// A session in a file. Format: a header, a flatbuffer (session_file.fbs), the pages of the caches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/model/model.h"
#include "runner/session/state/memory.h"
#include "runner/session/state/session_snapshot.h"

namespace mote {

// `states` is the memory that the snapshot was taken from. The file is written beside `path`, synced and renamed, so
// that `path` is always a whole file. Errors: kFileUnwritable.
Status write_session_file(const std::string& path, const Model& model, const SessionSnapshot& snapshot,
                          const StateMemory& states);

// The bytes of a delegate's state, which its backend restores the state from.
struct SavedDelegate {
  std::string backend;
  std::vector<std::byte> bytes;
};

struct SavedSession {
  std::vector<int32_t> tokens{};
  std::vector<float> logits{};            // after the last token; empty: not known
  std::optional<StateSnapshot> states{};  // absent: `states` could not take it
  std::vector<SavedDelegate> delegates{};
};

// Reads what write_session_file wrote; pages only if `states` has their layout. Whatever the file holds, what comes
// back is safe to adopt. Errors: kFileNotFound, kFileUnreadable, kUnsupportedVersion, kInvalidSession naming the field
// or other adapters than these, kContextFull for more than context_length tokens, kOutOfMemory.
Result<SavedSession> read_session_file(const std::string& path, const Model& model, const StateMemory& states,
                                       const AdapterMix& adapters, int64_t context_length);

}  // namespace mote
