#include "runner/capi/handles.h"

using mote::Code;
using mote::Status;
using mote::capi::change;
using mote::capi::enter;
using mote::capi::give;
using mote::capi::guarded;
using mote::capi::Object;
using mote::capi::share;
using mote::capi::Shared;

namespace {

Status check_index(const Object<mote_batch>& batch, size_t index) {
  MOTE_REQUIRE(index < batch.pieces.size(), Code::kInvalidArgument, "index = %zu: the last step gave %zu pieces", index,
               batch.pieces.size());
  return {};
}

// The batch has the session until release_ended.
mote::Result<int64_t> add_session(Object<mote_batch>& batch, mote_session* handle, std::vector<int32_t> prompt,
                                  const mote::GenerationOptions& options) {
  MOTE_ASSIGN(auto session, change(handle));
  const std::lock_guard lock(batch.lent_mutex);
  batch.lent.reserve(batch.lent.size() + 1);
  MOTE_ASSIGN(const int64_t sequence, batch.batch->add(std::move(prompt), options, session->session));
  session->occupancy.lend_to_batch();
  batch.lent.push_back({sequence, std::move(session)});
  return sequence;
}

void release_ended(Object<mote_batch>& batch) {
  const std::lock_guard lock(batch.lent_mutex);
  for (const mote::BatchPiece& piece : batch.pieces) {
    if (piece.statistics.has_value())
      std::erase_if(batch.lent, [&](const auto& lent) { return lent.sequence == piece.sequence; });
  }
}

}  // namespace

mote_error_code mote_batch_open(mote_model* handle, int32_t max_sequences, const mote_options* requested,
                                mote_batch** out, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(out);
    *out = nullptr;
    MOTE_ASSIGN(const auto model, share(handle));
    mote::BatchOptions options;
    if (max_sequences != 0) options.max_sequences = max_sequences;
    MOTE_ASSIGN(const mote::OptionSet given, mote::capi::options_of(requested));
    MOTE_ASSIGN(options.session, given.session());
    MOTE_ASSIGN(auto batch, mote::Batch::open(model->model, options));
    return give(out, std::vector<mote::capi::LentSession>(), std::shared_ptr<mote::Batch>(std::move(batch)));
  });
}

void mote_batch_close(mote_batch* handle) {
  // Sessions may keep the batch.
  if (const auto batch = Shared<mote_batch>::find(handle)) batch->batch->cancel_those_of_next();
  mote::capi::close(handle);
}

mote_error_code mote_batch_add(mote_batch* handle, mote_session* session, const int32_t* ids, size_t count,
                               const mote_options* requested, int64_t* sequence, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto batch, share(handle));
    MOTE_REQUIRE_POINTER(sequence);
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    MOTE_ASSIGN(const mote::OptionSet given, mote::capi::options_of(requested));
    MOTE_ASSIGN(const mote::GenerationOptions options, given.generation(batch->batch->model()));
    std::vector<int32_t> prompt(ids, ids + count);
    MOTE_ASSIGN(*sequence, session == nullptr ? batch->batch->add(std::move(prompt), options)
                                              : add_session(*batch, session, std::move(prompt), options));
    return {};
  });
}

mote_error_code mote_batch_add_fork(mote_batch* handle, const mote_session* session_handle, const int32_t* ids,
                                    size_t count, const mote_options* requested, int64_t* sequence, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto batch, share(handle));
    MOTE_ASSIGN(const auto session, enter(session_handle));
    MOTE_REQUIRE_POINTER(sequence);
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    MOTE_ASSIGN(const mote::OptionSet given, mote::capi::options_of(requested));
    MOTE_ASSIGN(const mote::GenerationOptions options, given.generation(batch->batch->model()));
    MOTE_ASSIGN(*sequence, batch->batch->add_fork(*session->session, std::vector<int32_t>(ids, ids + count), options));
    return {};
  });
}

void mote_batch_cancel(mote_batch* handle, int64_t sequence) {
  if (const auto batch = Shared<mote_batch>::find(handle)) batch->batch->cancel(sequence);
}

int64_t mote_batch_num_sequences(const mote_batch* handle) {
  const auto batch = Shared<mote_batch>::find(handle);
  return batch ? static_cast<int64_t>(batch->batch->num_sequences()) : -1;
}

mote_error_code mote_batch_step(mote_batch* handle, size_t* count, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto batch, enter(handle));
    MOTE_REQUIRE_POINTER(count);
    *count = 0;
    batch->pieces = {};
    MOTE_ASSIGN(batch->pieces, batch->batch->step());
    release_ended(*batch);
    batch->memory.resize(std::max(batch->memory.size(), batch->pieces.size()));
    *count = batch->pieces.size();
    return {};
  });
}

mote_error_code mote_batch_piece(mote_batch* handle, size_t index, int64_t* sequence, mote_piece* piece,
                                 mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto batch, enter(handle));
    MOTE_REQUIRE_POINTER(sequence);
    MOTE_REQUIRE_POINTER(piece);
    MOTE_RETURN_IF_ERROR(check_index(*batch, index));
    const mote::BatchPiece& from = batch->pieces[index];
    *sequence = from.sequence;
    MOTE_RETURN_IF_ERROR(from.status);
    return mote::capi::write_piece(from.piece, batch->memory[index], piece);
  });
}

mote_error_code mote_batch_statistics(const mote_batch* handle, size_t index, mote_statistics* statistics,
                                      mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto batch, enter(handle));
    MOTE_REQUIRE_POINTER(statistics);
    MOTE_RETURN_IF_ERROR(check_index(*batch, index));
    const mote::BatchPiece& from = batch->pieces[index];
    MOTE_REQUIRE(from.statistics.has_value(), Code::kInvalidArgument,
                 "sequence %lld goes on: only its last piece has statistics", static_cast<long long>(from.sequence));
    const auto& reason = from.piece.finish_reason;
    return mote::capi::write_statistics(
        *from.statistics, reason.has_value() ? static_cast<mote_finish_reason>(*reason) : MOTE_FINISH_NONE, statistics);
  });
}
