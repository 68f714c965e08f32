#include "runner/generation/batch.h"

#include <algorithm>
#include <thread>

#include "base/parts.h"
#include "runner/program/cpus.h"
#include "runner/program/token_rows.h"

namespace mote {
namespace {

// So that memory that one sequence does not get ends that sequence and not the step.
template <typename Body>
auto without_throwing(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) { return Status(Code::kOutOfMemory, "out of memory"); }
}

// Calls `body` at its end.
template <typename Body>
class Finally {
 public:
  explicit Finally(Body body) : body_(std::move(body)) {}
  ~Finally() { body_(); }

 private:
  Body body_;
};

}  // namespace

struct Batch::Sequence {
  int64_t number = 0;
  std::shared_ptr<Session> session;
  std::unique_ptr<Generation> generation;
  size_t num_read = 0;  // of what is pending
  bool has_started = false;
  bool has_piece = false;  // of this step
  bool is_over = false;

  // Ids that the model has not read: one more of them gives the next piece, or a prompt.
  std::span<const int32_t> rest() const { return generation->pending().subspan(num_read); }
  void start() {
    if (has_started) return;
    generation->start();
    has_started = true;
    try {
      num_read = session->reuse(rest());
    } catch (const std::bad_alloc&) {
      // It is computed again.
    }
  }
};

Result<std::unique_ptr<Batch>> Batch::open(std::shared_ptr<const Model> model, const BatchOptions& requested) {
  MOTE_REQUIRE_PART("sessions.batches", Code::kInvalidArgument);
  BatchOptions options = requested;
  MOTE_ASSIGN(options.session, resolve(*model, requested.session));
  MOTE_REQUIRE(options.max_sequences >= 1 && options.max_sequences <= kMaxSequences, Code::kInvalidArgument,
               "max_sequences = %lld: must be 1..%lld", static_cast<long long>(options.max_sequences),
               static_cast<long long>(kMaxSequences));
  std::unique_ptr<Batch> batch(new Batch(std::move(model), options));
  MOTE_RETURN_IF_ERROR(batch->prepare());
  return batch;
}

Batch::Batch(std::shared_ptr<const Model> model, const BatchOptions& options)
    : model_(std::move(model)), options_(options) {}
Batch::~Batch() = default;

Status Batch::prepare() {
  const std::shared_ptr<const Bound>& bound = model_->bound();
  MOTE_ASSIGN(decode_, bound->method_index("decode"));
  MOTE_ASSIGN(verify_, bound->method_index("verify"));
  const int64_t most = model_->bound()->method(verify_).max_tokens();
  MOTE_REQUIRE(options_.max_sequences <= most, Code::kInvalidArgument,
               "max_sequences = %lld: must be 1..%lld, which the program computes in one call",
               static_cast<long long>(options_.max_sequences), static_cast<long long>(most));
  MOTE_RETURN_IF_ERROR(check_token_rows(*bound, verify_));
  const SessionOptions& session = options_.session;
  MOTE_ASSIGN(adapters_, load_mix(*model_, session.adapters));
  MOTE_ASSIGN(engine_, make_engine(bound, {session.threads, session.cpus, session.priority,
                                           std::max(session.prefill_chunk, options_.max_sequences)}));
  return engine_.executor->prepare(decode_, 1);
}

Result<int64_t> Batch::add(std::vector<int32_t> prompt, const GenerationOptions& options,
                           std::shared_ptr<Session> session, PieceDelivery delivery) {
  MOTE_REQUIRE_PART("sessions.batches", Code::kInvalidArgument);
  auto sequence = std::make_unique<Sequence>();
  if (session == nullptr) {
    SessionOptions own = options_.session;
    if (own.prefix_cache == nullptr) own.rewind_tokens = 0;  // nobody but the batch has it, which never goes back
    MOTE_ASSIGN(sequence->session, Session::open(model_, own, &engine_));
  } else {
    MOTE_REQUIRE(&session->model() == model_.get(), Code::kInvalidArgument,
                 "the session is of another model than the batch");
    sequence->session = std::move(session);
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [number, other] : sessions_) {
    MOTE_REQUIRE(other != sequence->session, Code::kInvalidArgument,
                 "the session is in the batch already: it continues sequence %lld", static_cast<long long>(number));
  }
  MOTE_ASSIGN(sequence->generation, Generation::begin(*sequence->session, std::move(prompt), options));
  sequence->number = num_added_;
  try {
    sessions_.emplace(num_added_, sequence->session);
    if (delivery == PieceDelivery::kByNext) delivered_[num_added_];
    added_.push_back(std::move(sequence));
  } catch (...) {
    sessions_.erase(num_added_);
    delivered_.erase(num_added_);
    throw;
  }
  return num_added_++;
}

Result<int64_t> Batch::add_fork(Session& session, std::vector<int32_t> prompt, const GenerationOptions& options) {
  MOTE_REQUIRE(&session.model() == model_.get(), Code::kInvalidArgument,
               "the session is of another model than the batch");
  MOTE_ASSIGN(std::shared_ptr<Session> fork, session.fork(&engine_));
  return add(std::move(prompt), options, std::move(fork));
}

void Batch::cancel(int64_t sequence) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(sequence);
  if (found != sessions_.end()) found->second->cancel();
}

void Batch::cancel_those_of_next() {
  const std::lock_guard lock(mutex_);
  for (const auto& [sequence, session] : sessions_) {
    if (delivered_.contains(sequence)) session->cancel();
  }
}

size_t Batch::num_sequences() const {
  const std::lock_guard lock(mutex_);
  return sessions_.size();
}

Result<std::span<const BatchPiece>> Batch::step() {
  MOTE_REQUIRE_PART("sessions.batches", Code::kInvalidArgument);
  const std::unique_lock lock(step_mutex_, std::try_to_lock);
  MOTE_REQUIRE(lock.owns_lock(), Code::kInvalidArgument, "another thread is in a step of this batch");
  if (!take_unclaimed()) {
    compute_step();
    handed_out_.swap(pieces_);
  }
  return std::span<const BatchPiece>(handed_out_);
}

// Those that calls of next computed, the first of each sequence.
bool Batch::take_unclaimed() {
  handed_out_.clear();
  const auto is_first = [&](const BatchPiece& piece) {
    return std::ranges::find(handed_out_, piece.sequence, &BatchPiece::sequence) == handed_out_.end();
  };
  handed_out_.reserve(unclaimed_.size());
  std::erase_if(unclaimed_, [&](BatchPiece& piece) {
    if (!is_first(piece)) return false;
    handed_out_.push_back(std::move(piece));
    return true;
  });
  return !handed_out_.empty();
}

void Batch::compute_step() {
  pieces_.clear();
  admit();
  wait();
  start_without_prompt();
  read_prompts();
  decode();
  std::erase_if(running_, [](const std::unique_ptr<Sequence>& sequence) { return sequence->is_over; });
  deliver();
}

// The pieces that next hands out leave those of the step.
void Batch::deliver() {
  const std::lock_guard lock(mutex_);
  if (delivered_.empty()) return;
  std::erase_if(pieces_, [&](BatchPiece& piece) {
    const auto found = delivered_.find(piece.sequence);
    if (found == delivered_.end()) return false;
    found->second.push_back(std::move(piece));
    return true;
  });
  stepped_.notify_all();
}

BatchPiece Batch::next(int64_t sequence) {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto found = delivered_.find(sequence);
    if (found == delivered_.end())
      return {sequence, {}, Status(Code::kInvalidArgument, "the sequence is over"), Statistics()};
    if (!found->second.empty()) {
      BatchPiece piece = std::move(found->second.front());
      found->second.pop_front();
      if (piece.is_last()) delivered_.erase(found);
      return piece;
    }
    if (is_in_next_) {
      stepped_.wait(lock);
    } else {
      step_for_next(lock);
    }
  }
}

void Batch::step_for_next(std::unique_lock<std::mutex>& lock) {
  is_in_next_ = true;
  const Finally finally([&] {
    lock.lock();
    is_in_next_ = false;
    stepped_.notify_all();
  });
  lock.unlock();
  const std::lock_guard step_lock(step_mutex_);
  compute_step();
  for (BatchPiece& piece : pieces_) unclaimed_.push_back(std::move(piece));
  pieces_.clear();
}

void Batch::admit() {
  {
    const std::lock_guard lock(mutex_);
    for (; !added_.empty(); added_.pop_front()) waiting_.push_back(std::move(added_.front()));
  }
  pieces_.reserve(waiting_.size() + running_.size());
  drop_cancelled(waiting_);
  drop_cancelled(running_);
  while (!waiting_.empty() && running_.size() < static_cast<size_t>(options_.max_sequences)) {
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  for (const auto& sequence : running_) sequence->has_piece = false;
}

void Batch::drop_cancelled(std::deque<std::unique_ptr<Sequence>>& sequences) {
  for (const auto& sequence : sequences) {
    if (sequence->session->take_cancel()) cancel(*sequence);
  }
  std::erase_if(sequences, [](const std::unique_ptr<Sequence>& sequence) { return sequence->is_over; });
}

// Where all sequences are held back, for a slice of the time after which the first one is not.
void Batch::wait() const {
  Clock::duration least = kMostWait;
  for (const auto& sequence : running_) least = std::min(least, sequence->generation->time_to_wait());
  if (!running_.empty()) std::this_thread::sleep_for(least);
}

// Sequences that go on from what their session has: their first token needs its logits only.
void Batch::start_without_prompt() {
  for (const auto& sequence : running_) {
    if (!sequence->rest().empty()) continue;
    sequence->start();
    const auto logits = without_throwing([&] { return sequence->session->logits(); });
    if (logits.ok()) {
      take(*sequence, *logits, sequence->session->logit_maxima());
    } else {
      fail(*sequence, logits.status());
    }
  }
}

// One chunk of one prompt, so that the others never wait for longer than that.
void Batch::read_prompts() {
  const auto has_prompt = [](const auto& sequence) { return !sequence->has_piece && sequence->rest().size() > 1; };
  const auto next = std::find_if(running_.begin(), running_.end(), has_prompt);
  if (next == running_.end()) return;
  Sequence& sequence = **next;
  sequence.start();
  const std::span<const int32_t> rest = sequence.rest();
  const size_t count = std::min(rest.size(), static_cast<size_t>(sequence.session->prefill_chunk()));
  const auto logits = without_throwing([&] { return sequence.session->prefill(rest.first(count)); });
  if (!logits.ok()) return fail(sequence, logits.status());
  if (count == rest.size()) return take(sequence, *logits, sequence.session->logit_maxima());
  sequence.num_read += count;
  if (sequence.generation->is_out_of_time()) cancel(sequence);
}

void Batch::decode() {
  members_.clear();
  rows_.clear();
  members_.reserve(running_.size());
  rows_.reserve(running_.size());
  for (const auto& sequence : running_) {
    if (sequence->has_piece || sequence->rest().size() != 1) continue;
    if (sequence->generation->time_to_wait() > Clock::duration::zero()) continue;
    sequence->start();
    const auto states = without_throwing([&] { return sequence->session->begin_call(sequence->rest()); });
    if (!states.ok()) {
      fail(*sequence, states.status());
      continue;
    }
    members_.push_back(sequence.get());
    rows_.push_back(*states);
  }
  if (members_.empty()) return;
  const auto logits = without_throwing([&] { return run(rows_); });
  const uint32_t method = rows_.size() == 1 ? decode_ : verify_;
  const std::span<const float> maxima = logits.ok() ? engine_.executor->maxima(method) : std::span<const float>();
  const size_t width = static_cast<size_t>(model_->vocab_size()), num_maxima = maxima.size() / members_.size();
  for (size_t i = 0; i < members_.size(); ++i) {
    Sequence& sequence = *members_[i];
    sequence.session->end_call(sequence.rest(), logits.status());
    if (logits.ok()) {
      take(sequence, logits->subspan(i * width, width), maxima.subspan(i * num_maxima, num_maxima));
    } else {
      fail(sequence, logits.status());
    }
  }
}

// A row of logits for each of members_.
Result<std::span<const float>> Batch::run(std::span<const SequenceStates> rows) {
  const uint32_t method = rows.size() == 1 ? decode_ : verify_;
  MOTE_RETURN_IF_ERROR(engine_.executor->prepare(method, static_cast<int64_t>(rows.size())));
  const std::span<int64_t> input_ids = engine_.executor->input(method, 0);
  const std::span<int64_t> position_ids = engine_.executor->input(method, 1);
  for (size_t i = 0; i < members_.size(); ++i) {
    input_ids[i] = members_[i]->rest().front();
    position_ids[i] = members_[i]->session->position();
  }
  const ScopedBinding binding(engine_.cpus);
  MOTE_RETURN_IF_ERROR(engine_.executor->run_together(method, rows, not_cancelled_));
  return engine_.executor->output(method, 0);
}

// The piece that follows from these logits.
void Batch::take(Sequence& sequence, std::span<const float> logits, std::span<const float> maxima) {
  auto piece = without_throwing([&]() -> Result<Piece> { return sequence.generation->accept(logits, maxima); });
  if (!piece.ok()) return fail(sequence, piece.status());
  if (!sequence.generation->status().ok()) return fail(sequence, sequence.generation->status());
  give(sequence, *std::move(piece));
}

void Batch::cancel(Sequence& sequence) {
  auto piece = without_throwing([&]() -> Result<Piece> { return sequence.generation->cancelled(); });
  piece.ok() ? give(sequence, *std::move(piece)) : fail(sequence, piece.status());
}

void Batch::give(Sequence& sequence, Piece piece) {
  sequence.num_read = 0;
  sequence.has_piece = true;
  if (piece.finish_reason.has_value()) end(sequence);
  std::optional<Statistics> statistics;
  if (sequence.is_over) statistics = sequence.generation->statistics();
  pieces_.push_back({sequence.number, std::move(piece), {}, statistics});
}

void Batch::fail(Sequence& sequence, Status status) {
  if (status.code() == Code::kCancelled) return cancel(sequence);
  end(sequence);
  pieces_.push_back({sequence.number, {}, std::move(status), sequence.generation->statistics()});
}

// From here on no cancel of the sequence reaches its session, which others may use.
void Batch::end(Sequence& sequence) {
  sequence.is_over = true;
  const std::lock_guard lock(mutex_);
  sessions_.erase(sequence.number);
  (void)sequence.session->take_cancel();
}

}  // namespace mote
