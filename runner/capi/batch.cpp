#include "runner/capi/handles.h"

using mote::Code;
using mote::Status;
using mote::capi::guarded;

namespace {

mote::Result<mote::BatchOptions> read_options(const mote_batch_options* requested) {
  mote_batch_options options{};
  if (requested != nullptr) MOTE_RETURN_IF_ERROR(mote::capi::read_struct(requested, options));
  mote::BatchOptions result;
  if (options.max_sequences != 0) result.max_sequences = options.max_sequences;
  MOTE_ASSIGN(result.session, mote::capi::read_session_options(options.session));
  return result;
}

Status check_index(const mote_batch& batch, size_t index) {
  MOTE_REQUIRE(index < batch.pieces.size(), Code::kInvalidArgument, "index = %zu: the last step gave %zu pieces", index,
               batch.pieces.size());
  return {};
}

}  // namespace

int32_t mote_batch_open(mote_model* model, const mote_batch_options* requested, mote_batch** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_REQUIRE_POINTER(model);
    MOTE_ASSIGN(const mote::BatchOptions options, read_options(requested));
    auto handle = std::make_unique<mote_batch>();
    MOTE_ASSIGN(handle->batch, mote::Batch::open(model->model, options));
    *out = handle.release();
    return {};
  });
}

void mote_batch_close(mote_batch* batch) { delete batch; }

int32_t mote_batch_add(mote_batch* batch, mote_session* session, const int32_t* ids, size_t count,
                       const mote_generation_options* requested, int64_t* sequence, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(batch);
    MOTE_REQUIRE_POINTER(sequence);
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    MOTE_ASSIGN(const mote::GenerationOptions options, mote::capi::read_generation_options(batch->batch->model(), requested));
    MOTE_ASSIGN(*sequence, batch->batch->add(std::vector<int32_t>(ids, ids + count), options,
                                             session == nullptr ? nullptr : session->session));
    return {};
  });
}

int32_t mote_batch_add_fork(mote_batch* batch, const mote_session* session, const int32_t* ids, size_t count,
                            const mote_generation_options* requested, int64_t* sequence, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(batch);
    MOTE_REQUIRE_POINTER(session);
    MOTE_REQUIRE_POINTER(sequence);
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    MOTE_ASSIGN(const mote::GenerationOptions options, mote::capi::read_generation_options(batch->batch->model(), requested));
    MOTE_ASSIGN(*sequence, batch->batch->add_fork(*session->session, std::vector<int32_t>(ids, ids + count), options));
    return {};
  });
}

void mote_batch_cancel(mote_batch* batch, int64_t sequence) {
  if (batch != nullptr) batch->batch->cancel(sequence);
}

int64_t mote_batch_num_sequences(const mote_batch* batch) {
  return batch == nullptr ? -1 : static_cast<int64_t>(batch->batch->num_sequences());
}

int32_t mote_batch_step(mote_batch* batch, size_t* count, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(batch);
    MOTE_REQUIRE_POINTER(count);
    *count = 0;
    MOTE_ASSIGN(const std::span<const mote::BatchPiece> pieces, batch->batch->step());
    batch->pieces.assign(pieces.begin(), pieces.end());
    batch->memory.resize(std::max(batch->memory.size(), pieces.size()));
    *count = pieces.size();
    return {};
  });
}

int32_t mote_batch_piece(mote_batch* batch, size_t index, int64_t* sequence, mote_piece* piece, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(batch);
    MOTE_REQUIRE_POINTER(sequence);
    MOTE_REQUIRE_POINTER(piece);
    MOTE_RETURN_IF_ERROR(check_index(*batch, index));
    const mote::BatchPiece& from = batch->pieces[index];
    *sequence = from.sequence;
    MOTE_RETURN_IF_ERROR(from.status);
    return mote::capi::write_piece(from.piece, batch->memory[index], piece);
  });
}

int32_t mote_batch_statistics(const mote_batch* batch, size_t index, mote_statistics* statistics, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(batch);
    MOTE_REQUIRE_POINTER(statistics);
    MOTE_RETURN_IF_ERROR(check_index(*batch, index));
    const mote::BatchPiece& from = batch->pieces[index];
    MOTE_REQUIRE(from.statistics.has_value(), Code::kInvalidArgument, "sequence %lld goes on: only its last piece has statistics",
                 static_cast<long long>(from.sequence));
    const auto& reason = from.piece.finish_reason;
    return mote::capi::write_statistics(*from.statistics, reason.has_value() ? static_cast<int32_t>(*reason) : -1, statistics);
  });
}
