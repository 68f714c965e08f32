#include "runner/generation/speculation/draft_model.h"

#include <algorithm>

#include "runner/generation/statistics.h"

namespace mote {
namespace {

// Before it is measured; not 0, which is free of cost.
constexpr double kHopedSeconds = 1e-9;

std::string quoted(const Tokenizer& tokenizer, int32_t id) {
  if (!tokenizer.has_token(id)) return "none";
  return "\"" + tokenizer.token_text(id) + (tokenizer.is_special(id) ? "\" (special)" : "\"");
}

bool have_same_bytes(const Model& a, const Model& b) {
  const auto first = a.bound()->verified().segment(fb::SegmentKind::tokenizer);
  const auto second = b.bound()->verified().segment(fb::SegmentKind::tokenizer);
  return std::equal(first.begin(), first.end(), second.begin(), second.end());
}

}  // namespace

Status check_same_tokens(const Model& target, const Model& draft) {
  const char* target_path = target.path().c_str();
  const char* draft_path = draft.path().c_str();
  if (!target.has_tokenizer() && !draft.has_tokenizer()) {
    MOTE_REQUIRE(target.vocab_size() == draft.vocab_size(), Code::kInvalidArgument,
                 "draft model %s: vocab_size = %d: must be %d, that of %s, as neither has a tokenizer", draft_path,
                 draft.vocab_size(), target.vocab_size(), target_path);
    return {};
  }
  MOTE_ASSIGN(const Tokenizer* expected, target.tokenizer());
  MOTE_ASSIGN(const Tokenizer* found, draft.tokenizer());
  MOTE_REQUIRE(expected != nullptr && found != nullptr, Code::kInvalidArgument,
               "draft model %s: %s has a tokenizer and %s has none: a draft model needs the same tokenizer", draft_path,
               found != nullptr ? draft_path : target_path, found != nullptr ? target_path : draft_path);
  if (have_same_bytes(target, draft)) return {};
  for (int32_t id = 0; id < std::max(expected->num_ids(), found->num_ids()); ++id) {
    const std::string ours = quoted(*expected, id), theirs = quoted(*found, id);
    MOTE_REQUIRE(ours == theirs, Code::kInvalidArgument,
                 "draft model %s: token %d is %s, in %s it is %s: a draft model needs the same tokenizer", draft_path,
                 id, theirs.c_str(), target_path, ours.c_str());
  }
  return {};
}

Result<std::unique_ptr<DraftModel>> DraftModel::open(const Session& target, std::shared_ptr<const Model> draft) {
  MOTE_RETURN_IF_ERROR(check_same_tokens(target.model(), *draft));
  // The default prefill_chunk is also how far a ring goes back: more than any draft.
  const SessionOptions& own = target.options();
  SessionOptions options;
  options.context_length = std::min<int64_t>(own.context_length, draft->max_position_embeddings());
  options.kv_dtype = own.kv_dtype;
  options.threads = own.threads;
  options.cpus = own.cpus;
  options.priority = own.priority;
  MOTE_ASSIGN(std::unique_ptr<Session> session, Session::open(std::move(draft), options));
  session->share_cancel(target);
  return std::unique_ptr<DraftModel>(new DraftModel(std::move(session)));
}

double DraftModel::seconds_an_id() const { return costs_.is_known() ? costs_.of(1) : kHopedSeconds; }

bool DraftModel::can_follow(std::span<const int32_t> text) const {
  const auto held = std::min(text.size(), session_->tokens().size());
  return static_cast<int64_t>(text.size()) <= session_->context_length() &&
         session_->check_ids(text.subspan(held)).ok();
}

// Brings the session to the text, and gives the logits behind it.
Result<std::span<const float>> DraftModel::follow(std::span<const int32_t> text) {
  const std::span<const int32_t> held = session_->tokens();
  const auto most = static_cast<ptrdiff_t>(std::min(held.size(), text.size() - 1));
  const auto same =
      static_cast<size_t>(std::mismatch(held.begin(), held.begin() + most, text.begin()).first - held.begin());
  MOTE_RETURN_IF_ERROR(session_->rewind(static_cast<int64_t>(same)));
  return session_->prefill(text.subspan(same));
}

Status DraftModel::propose(const DraftContext& context, Draft& draft) {
  const std::span<const int32_t> text = context.text;
  if (!can_follow(text) || !draft.wants(usual_grade_)) return {};
  MOTE_ASSIGN(std::span<const float> logits, follow(text));
  Likeliest guess = likeliest(logits);
  usual_grade_ = (3 * usual_grade_ + guess.grade + 2) / 4;
  for (;;) {
    draft.add(guess.id, guess.grade);
    if (!draft.wants(guess.grade) || session_->position() == session_->context_length()) return {};
    const Clock::time_point start = Clock::now();
    MOTE_ASSIGN(logits, session_->decode(guess.id));
    guess = likeliest(logits);
    costs_.add(1, seconds_since(start));
  }
}

}  // namespace mote
