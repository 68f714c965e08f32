#include "runner/generation/piece_stream.h"

#include <thread>

#include "runner/generation/batch.h"

namespace mote {
namespace {

class OfSession final : public PieceStream {
 public:
  OfSession(std::shared_ptr<Session> session, std::unique_ptr<Generation> generation)
      : session_(std::move(session)), generation_(std::move(generation)) {}
  Result<Piece> next() override { return generation_->next(); }
  void cancel() override { generation_->cancel(); }
  Statistics statistics() const override { return generation_->statistics(); }

 private:
  std::shared_ptr<Session> session_;  // outlives its generation
  std::unique_ptr<Generation> generation_;
};

class OfBatch final : public PieceStream {
 public:
  OfBatch(std::shared_ptr<Batch> batch, int64_t sequence) : batch_(std::move(batch)), sequence_(sequence) {}

  // Comes back when the batch has let go of the session.
  ~OfBatch() override {
    batch_->cancel(sequence_);
    while (!last_.has_value()) {
      try {
        (void)next();
      } catch (const std::bad_alloc&) { std::this_thread::yield(); }
    }
  }

  Result<Piece> next() override {
    if (!last_.has_value()) {
      BatchPiece piece = batch_->next(sequence_);
      if (!piece.is_last()) return std::move(piece.piece);
      last_ = std::move(piece);
      if (last_->status.ok()) return last_->piece;
    }
    if (!last_->status.ok()) return last_->status;
    Piece end;
    end.finish_reason = last_->piece.finish_reason;
    return end;
  }
  void cancel() override { batch_->cancel(sequence_); }
  Statistics statistics() const override { return last_.has_value() ? *last_->statistics : Statistics(); }

 private:
  std::shared_ptr<Batch> batch_;
  int64_t sequence_;
  std::optional<BatchPiece> last_;
};

}  // namespace

Result<std::unique_ptr<PieceStream>> begin_stream(const Place& place, std::vector<int32_t> prompt,
                                                  const GenerationOptions& options) {
  if (place.batch != nullptr) {
    MOTE_ASSIGN(const int64_t sequence,
                place.batch->add(std::move(prompt), options, place.session, PieceDelivery::kByNext));
    return std::unique_ptr<PieceStream>(new OfBatch(place.batch, sequence));
  }
  MOTE_ASSIGN(auto generation, Generation::begin(*place.session, std::move(prompt), options, place.speculator));
  return std::unique_ptr<PieceStream>(new OfSession(place.session, std::move(generation)));
}

}  // namespace mote
