// A text as it is generated, whoever runs the model for it: a session by itself, or a batch for several.
#pragma once

#include <memory>
#include <vector>

#include "runner/generation/generation.h"

namespace mote {

class Batch;

// Thread safety: one thread at a time, but for cancel.
class PieceStream {
 public:
  virtual ~PieceStream() = default;
  // As Generation::next.
  virtual Result<Piece> next() = 0;
  // From any thread, while the stream lives: as Generation::cancel.
  virtual void cancel() = 0;
  // Of a sequence of a batch what is known after its last piece, zeros before.
  virtual Statistics statistics() const = 0;
};

// What runs the model.
struct Place {
  std::shared_ptr<Session> session;
  std::shared_ptr<Speculator> speculator{};  // nullptr: a new one; not used in a batch
  std::shared_ptr<Batch> batch{};            // whose sequences the session's generations are; nullptr: none
};

// Errors: those of Generation::begin and Batch::add.
Result<std::unique_ptr<PieceStream>> begin_stream(const Place& place, std::vector<int32_t> prompt,
                                                  const GenerationOptions& options);

}  // namespace mote
