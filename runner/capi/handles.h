// What stands behind the handles of mote.h, and how a call comes to it.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/handles.h"
#include "runner/capi/boundary.h"
#include "runner/capi/occupancy.h"
#include "runner/capi/options.h"
#include "runner/chat/chat_turn.h"
#include "runner/embedding/embedder.h"
#include "runner/generation/batch.h"
#include "runner/generation/generation.h"
#include "runner/grammars/constraint.h"
#include "runner/model/model.h"
#include "runner/replies/parser.h"
#include "runner/session/session.h"

namespace mote::capi {

template <typename Handle>
struct Object;

// Pinned. Without `occupancy` an object may be used by any number of threads.
template <typename Handle>
using Shared = Held<Object<std::remove_const_t<Handle>>>;

// Pinned, with this thread in a call on it.
template <typename Handle>
class Entered {
 public:
  explicit Entered(Shared<Handle> held) : held_(std::move(held)), stay_(held_->occupancy) {}
  auto* operator->() const { return &*held_; }
  auto& operator*() const { return *held_; }

 private:
  Shared<Handle> held_;
  Stay stay_;
};

// Errors: kInvalidArgument for NULL, a closed handle or one of another kind.
template <typename Handle>
Result<Shared<Handle>> share(Handle* handle) {
  return Shared<Handle>::of(handle);
}

// Errors: also kInvalidState while there is another call.
template <typename Handle>
Result<Entered<Handle>> enter(Handle* handle) {
  MOTE_ASSIGN(auto held, share(handle));
  MOTE_RETURN_IF_ERROR(held->occupancy.enter());
  return Entered<Handle>(std::move(held));
}

template <typename Handle>
void close(Handle* handle) {
  close_handle(kHandleKind<Object<Handle>>, handle);
}

// *out = the handle of an object made of `parts`.
template <typename Handle, typename... Parts>
Status give(Handle** out, Parts&&... parts) {
  MOTE_ASSIGN(void* handle,
              open_handle(std::unique_ptr<Object<Handle>>(new Object<Handle>{std::forward<Parts>(parts)...})));
  *out = static_cast<Handle*>(handle);
  return {};
}

template <>
struct Object<mote_options> {
  static constexpr const char* kName = "set of options";
  OptionSet set;
  mutable std::mutex mutex{};
};

// change(set) with nobody else at it.
template <typename Change>
mote_error_code change_options(mote_options* handle, mote_error* error, const Change& change) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto options, share(handle));
    const std::lock_guard lock(options->mutex);
    return change(options->set);
  });
}

template <>
struct Object<mote_model> {
  static constexpr const char* kName = "model";
  std::shared_ptr<const Model> model;
};

template <>
struct Object<mote_session> {
  static constexpr const char* kName = "session";
  std::shared_ptr<Session> session;
  std::shared_ptr<Speculator> speculator = std::make_shared<Speculator>();
  std::shared_ptr<ContextWindow> window = std::make_shared<ContextWindow>();  // of its chats
  std::shared_ptr<Batch> batch{};                                             // that continues it; nullptr: none
  uint64_t num_changes = 0;                                                   // calls that may have changed its tokens
  Occupancy occupancy{kName};
};

// For calls that change the tokens: a generation that goes on in the session notices.
inline Result<Entered<mote_session>> change(mote_session* handle) {
  auto session = enter(handle);
  if (session.ok()) ++(*session)->num_changes;
  return session;
}

template <>
struct Object<mote_embedder> {
  static constexpr const char* kName = "embedder";
  std::unique_ptr<Embedder> embedder;
  Occupancy occupancy{kName};
};

template <>
struct Object<mote_adapter> {
  static constexpr const char* kName = "adapter";
  std::shared_ptr<const Model> model;  // whose file it reads
  std::shared_ptr<const Adapter> adapter;
};

template <>
struct Object<mote_prefix_cache> {
  static constexpr const char* kName = "prefix cache";
  std::shared_ptr<PrefixCache> cache;
};

// What runs the model for texts of the session.
inline ChatPlace place_of(const Object<mote_session>& session) {
  return {{session.session, session.speculator, session.batch}, session.window};
}

// The session of a text that is generated, kept alive for it.
class TextSession {
 public:
  // `entered`: by the call that begins the text. Where a batch continues the session, it has no other calls until
  // leave.
  TextSession(Shared<mote_session> session, Entered<mote_session> entered, const char* name)
      : session_(std::move(session)),
        name_(name),
        num_changes_(session_->num_changes),
        own_(std::make_unique<Occupancy>(name)) {
    if (session_->batch == nullptr) return;
    session_->occupancy.lend_to_batch();
    lent_.emplace(std::move(entered));
    is_of_batch_ = true;
  }

  Occupancy& occupancy() { return is_of_batch_ ? *own_ : session_->occupancy; }
  // Tells the session of the call that comes. Errors: kInvalidState if another one came between.
  Status change();
  // The text is over.
  void leave() { lent_.reset(); }

 private:
  Shared<mote_session> session_;
  const char* name_;
  uint64_t num_changes_;  // of the session, when the text last saw it
  std::unique_ptr<Occupancy> own_;
  bool is_of_batch_ = false;
  std::optional<Entered<mote_session>> lent_;
};

template <>
struct Object<mote_generation> {
  static constexpr const char* kName = "generation";
  TextSession session;
  std::unique_ptr<PieceStream> stream;
  Occupancy& occupancy = session.occupancy();
  PieceMemory piece{};  // of the last one
  mote_finish_reason finish_reason = MOTE_FINISH_NONE;
};

template <>
struct Object<mote_chat> {
  static constexpr const char* kName = "chat";
  Conversation conversation;
  Occupancy occupancy{kName};
};

template <>
struct Object<mote_chat_turn> {
  static constexpr const char* kName = "chat turn";
  TextSession session;
  std::unique_ptr<ChatTurn> turn;
  Occupancy& occupancy = session.occupancy();
  ChatEvent event{};  // the last one
  std::vector<mote_token_logprob> top_logprobs{};
};

// Of a sequence that is not over.
struct LentSession {
  int64_t sequence = -1;
  Entered<mote_session> session;
};

template <>
struct Object<mote_batch> {
  static constexpr const char* kName = "batch";
  std::vector<LentSession> lent;
  std::shared_ptr<Batch> batch;
  std::mutex lent_mutex{};
  std::span<const BatchPiece> pieces{};  // of the last step
  std::vector<PieceMemory> memory{};
  Occupancy occupancy{kName};
};

template <>
struct Object<mote_vocabulary> {
  static constexpr const char* kName = "vocabulary";
  std::shared_ptr<const constraints::Vocabulary> vocabulary;
  std::weak_ptr<const Model> model{};  // whose own it is
};

template <>
struct Object<mote_grammar> {
  static constexpr const char* kName = "grammar";
  std::shared_ptr<const Grammar> grammar;
};

template <>
struct Object<mote_constraint> {
  static constexpr const char* kName = "constraint";
  Constraint constraint;
  Occupancy occupancy{kName};
};

template <>
struct Object<mote_chat_template> {
  static constexpr const char* kName = "chat template";
  std::shared_ptr<const ChatTemplate> chat_template;
};

template <>
struct Object<mote_prompt> {
  static constexpr const char* kName = "prompt";
  Prompt prompt;
};

template <>
struct Object<mote_reply> {
  static constexpr const char* kName = "reply";
  std::unique_ptr<ReplyParser> parser;
  std::deque<ReplyEvent> events{};  // not taken yet
  ReplyEvent taken{};
  Occupancy occupancy{kName};
};

}  // namespace mote::capi
