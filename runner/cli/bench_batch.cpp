#include "runner/cli/bench_batch.h"

#include <algorithm>
#include <chrono>
#include <set>

namespace mote::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Batch = std::unique_ptr<mote_batch, Closer<mote_batch_close>>;

constexpr int kDefaultPrefillChunk = 256;

// Steps in which the prompts are read: those that are done decode meanwhile.
int steps_of_prompts(const BatchCase& test, int prefill_chunk) {
  const int chunk = prefill_chunk == 0 ? kDefaultPrefillChunk : prefill_chunk;
  return test.sequences * ((std::max(test.depth, 1) + chunk - 1) / chunk);
}

Batch open_batch(const BatchCase& test, const Model& model, const Options& options) {
  mote_batch* batch = nullptr;
  check([&](mote_error* error) { return mote_batch_open(model.get(), test.sequences, options.get(), &batch, error); });
  return Batch(batch);
}

// Ids that differ between sequences; runs are alike.
std::vector<int32_t> prompt_of(int sequence, int count, int32_t vocab_size) {
  std::vector<int32_t> ids;
  uint64_t x = 12345 + static_cast<uint64_t>(sequence);
  for (int i = 0; i < count; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    ids.push_back(static_cast<int32_t>((x >> 33) % static_cast<uint64_t>(vocab_size)));
  }
  return ids;
}

void add_sequences(const BatchCase& test, const Batch& batch, int32_t vocab_size) {
  const Options options = make_options(MOTE_SCOPE_GENERATION,
                                       {{"do_sample", {"false"}}, {"ignore_eos", {"true"}}, {"max_new_tokens", {"0"}}});
  for (int i = 0; i < test.sequences; ++i) {
    const std::vector<int32_t> ids = prompt_of(i, std::max(test.depth, 1), vocab_size);
    int64_t sequence = 0;
    check([&](mote_error* error) {
      return mote_batch_add(batch.get(), nullptr, ids.data(), ids.size(), options.get(), &sequence, error);
    });
  }
}

size_t step(const Batch& batch) {
  size_t count = 0;
  check([&](mote_error* error) { return mote_batch_step(batch.get(), &count, error); });
  return count;
}

// A step whose pieces are not all of them good ends the measurement.
void check_pieces(const Batch& batch, size_t count, std::set<int64_t>& started) {
  for (size_t i = 0; i < count; ++i) {
    auto piece = sized<mote_piece>();
    int64_t sequence = 0;
    check([&](mote_error* error) { return mote_batch_piece(batch.get(), i, &sequence, &piece, error); });
    started.insert(sequence);
  }
}

}  // namespace

int positions_of(const BatchCase& test, int prefill_chunk) {
  return std::max(test.depth, 1) + steps_of_prompts(test, prefill_chunk) + test.tokens + 1;
}

double time_batch(const BatchCase& test, const Model& model, const Options& options) {
  const Batch batch = open_batch(test, model, options);
  add_sequences(test, batch, info_of(model).vocab_size);
  std::set<int64_t> started;
  while (started.size() < static_cast<size_t>(test.sequences)) check_pieces(batch, step(batch), started);
  const auto start = Clock::now();
  for (int i = 0; i < test.tokens; ++i) check_pieces(batch, step(batch), started);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace mote::cli
