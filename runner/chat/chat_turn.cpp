#include "runner/chat/chat_turn.h"

#include <algorithm>
#include <utility>

namespace mote {
namespace {

static_assert(static_cast<int>(ChatEventKind::kContent) == static_cast<int>(ReplyEventKind::kContent));
static_assert(static_cast<int>(ChatEventKind::kCallDiscarded) == static_cast<int>(ReplyEventKind::kCallDiscarded));

// Once more from the start where the session cannot go back: a call that failed may have left a recurrent state broken.
Result<int64_t> go_to_prefix(Session& session, std::span<const int32_t> ids) {
  auto kept = session.rewind_to_prefix(ids);
  if (kept.ok() || kept.status().code() == Code::kCancelled || kept.status().code() == Code::kContextFull) return kept;
  session.reset();
  return session.rewind_to_prefix(ids);
}

}  // namespace

Result<std::unique_ptr<ChatTurn>> ChatTurn::begin(Conversation& conversation, const ChatPlace& place,
                                                  const GenerationOptions& options) {
  MOTE_REQUIRE(&place.session->model() == conversation.model().get(), Code::kInvalidArgument,
               "the session is of another model than the conversation");
  MOTE_ASSIGN(auto plan, conversation.plan());
  std::unique_ptr<ChatTurn> turn(new ChatTurn(std::move(plan), place, conversation.call_ids()));
  if (turn->place_.window == nullptr) turn->place_.window = std::make_shared<ContextWindow>();
  MOTE_RETURN_IF_ERROR(turn->start(conversation, options));
  return turn;
}

Status ChatTurn::start(Conversation& conversation, GenerationOptions options) {
  Session& session = *place_.session;
  session.forget_cancel();
  if (plan_->constraint.grammar != nullptr) {
    MOTE_REQUIRE(options.grammar == nullptr, Code::kInvalidArgument,
                 "%s: cannot be met by a reply that follows another grammar",
                 plan_->constraint.is_call ? "tool_choice" : "response_format");
    options.grammar = plan_->constraint.grammar;
  }
  const bool is_constrained = options.grammar != nullptr;
  MOTE_ASSIGN(const auto chat_template, conversation.chat_template());
  ReplyOptions reading;
  reading.format = plan_->constraint.is_call ? "call" : is_constrained ? "text" : "";
  reading.chat_template = chat_template->source();
  reading.prompt = plan_->text;
  reading.tools = plan_->tools;
  reading.is_reasoning = conversation.continues_reasoning();
  MOTE_ASSIGN(parser_, ReplyParser::make(reading));
  // The marks of reasoning and calls may be special tokens.
  options.skip_special_tokens = options.skip_special_tokens && (is_constrained || parser_->format_name() == "text");
  options.skip_eos = true;
  MOTE_ASSIGN(const std::vector<int32_t> ids, fitting(conversation));
  MOTE_ASSIGN(const int64_t kept, go_to_prefix(session, ids));
  statistics_.prompt_tokens = static_cast<int64_t>(ids.size());
  statistics_.kept_tokens = kept;
  forgotten_before_ = session.forgotten_tokens();
  MOTE_ASSIGN(stream_, begin_stream(place_, std::vector<int32_t>(ids.begin() + kept, ids.end()), options));
  return {};
}

// What of the prompt goes into the context.
Result<std::vector<int32_t>> ChatTurn::fitting(Conversation& conversation) const {
  Session& session = *place_.session;
  if (session.options().overflow != Overflow::kShift) return plan_->ids;
  if (session.keeps_system()) {
    MOTE_ASSIGN(const size_t num_system_ids, conversation.num_system_ids());
    session.set_num_keep(std::min(static_cast<int64_t>(num_system_ids), session.context_length() / 2));
  }
  return place_.window->fit(plan_->ids, session.context_length(), session.num_keep());
}

Result<ChatEvent> ChatTurn::next() {
  if (events_.empty() && !is_over_) MOTE_RETURN_IF_ERROR(step());
  if (events_.empty()) return done();
  ChatEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

Status ChatTurn::stop() {
  events_.clear();
  if (is_over_) return {};
  cancel();
  while (!is_over_) {
    MOTE_RETURN_IF_ERROR(step());
    events_.clear();
  }
  return {};
}

Status ChatTurn::step() {
  if (std::exchange(is_incomplete_, true)) {
    end();
    return Status(Code::kInvalidState, "the system had no memory for this turn's last event: its message ends before");
  }
  MOTE_RETURN_IF_ERROR(take_piece());
  is_incomplete_ = false;
  return {};
}

Status ChatTurn::take_piece() {
  auto piece = stream_->next();
  if (!piece.ok()) {
    end();
    return piece.status();
  }
  std::vector<ReplyEvent> found;
  if (!piece->text.empty()) {
    const Status status = parser_->push(piece->text, found);
    if (!status.ok()) {
      end();
      return status;
    }
  }
  if (piece->finish_reason.has_value()) parser_->finish(found);
  add(std::move(found));
  if (events_.empty()) events_.emplace_back();
  ChatEvent& first = events_.front();
  first.token_id = piece->id;
  first.logprob = piece->logprob;
  first.top_logprobs = std::move(piece->top_logprobs);
  if (!piece->finish_reason.has_value()) return {};
  finish_reason_ = piece->finish_reason;
  end();
  events_.push_back(done());
  return {};
}

void ChatTurn::add(std::vector<ReplyEvent> events) {
  for (ReplyEvent& from : events) {
    ChatEvent event;
    event.kind = static_cast<ChatEventKind>(from.kind);
    event.call_index = from.index;
    event.text = std::move(from.text);
    event.call_id = std::move(from.id);
    const bool has_id = event.kind == ChatEventKind::kCallBegin || event.kind == ChatEventKind::kCallEnd;
    if (has_id && event.call_id.empty()) event.call_id = call_ids_.of(from.index);
    events_.push_back(std::move(event));
  }
}

ChatEvent ChatTurn::done() const {
  ChatEvent event;
  event.kind = ChatEventKind::kDone;
  event.finish_reason = finish_reason_;
  return event;
}

// The message stays as far as it came.
void ChatTurn::end() {
  if (std::exchange(is_over_, true)) return;
  std::vector<ReplyEvent> rest;
  parser_->finish(rest);
  place_.window->forgot(place_.session->forgotten_tokens() - forgotten_before_);
}

std::string ChatTurn::message() {
  if (parser_->num_calls() > 0) (void)call_ids_.of(parser_->num_calls() - 1);
  return parser_->message(call_ids_.all());
}

ChatStatistics ChatTurn::statistics() const {
  ChatStatistics statistics = statistics_;
  statistics.generation = stream_->statistics();
  statistics.forgotten_tokens = place_.window->forgotten();
  statistics.position = place_.session->position();
  statistics.context_length = place_.session->context_length();
  return statistics;
}

}  // namespace mote
