// What the opaque handles of mote.h hold.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "runner/capi/boundary.h"
#include "runner/capi/options.h"
#include "runner/llm/batch.h"
#include "runner/llm/chat/chat_template.h"
#include "runner/llm/chat/reply/parser.h"
#include "runner/llm/constraints/constraint.h"
#include "runner/llm/generation.h"
#include "runner/llm/model.h"
#include "runner/llm/session.h"

struct mote_model {
  std::shared_ptr<const mote::Model> model;
};

struct mote_session {
  std::shared_ptr<mote::Session> session;
  std::shared_ptr<mote::Speculator> speculator = std::make_shared<mote::Speculator>();
};

struct mote_prefix_cache {
  std::shared_ptr<mote::PrefixCache> cache;
};

struct mote_generation {
  std::shared_ptr<mote::Session> session;  // kept alive for `generation`
  std::unique_ptr<mote::Generation> generation;
  mote::capi::PieceMemory piece;  // of the last one
  int32_t finish_reason = -1;
};

struct mote_batch {
  std::unique_ptr<mote::Batch> batch;
  std::vector<mote::BatchPiece> pieces;  // of the last step
  std::vector<mote::capi::PieceMemory> memory;
};

struct mote_vocabulary {
  std::shared_ptr<const mote::constraints::Vocabulary> vocabulary;
};

struct mote_grammar {
  std::shared_ptr<const mote::Grammar> grammar;
};

struct mote_constraint {
  mote::Constraint constraint;
};

struct mote_chat_template {
  std::shared_ptr<const mote::ChatTemplate> chat_template;
};

struct mote_prompt {
  mote::Prompt prompt;
};

namespace mote::capi {

// Errors: kInvalidArgument naming the field, those of the template.
Result<Prompt> render(const ChatTemplate& chat_template, const mote_conversation& conversation);

}  // namespace mote::capi

struct mote_reply {
  std::unique_ptr<mote::ReplyParser> parser;
  std::deque<mote::ReplyEvent> events;  // not taken yet
  mote::ReplyEvent taken;
};
