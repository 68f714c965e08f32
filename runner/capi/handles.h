// What the opaque handles of mote.h hold.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "runner/capi/boundary.h"
#include "runner/llm/chat/chat_template.h"
#include "runner/llm/chat/reply/parser.h"
#include "runner/llm/generation.h"
#include "runner/llm/model.h"
#include "runner/llm/session.h"

struct mote_model {
  std::shared_ptr<const mote::Model> model;
};

struct mote_session {
  std::shared_ptr<mote::Session> session;
};

struct mote_generation {
  std::shared_ptr<mote::Session> session;  // kept alive for `generation`
  std::unique_ptr<mote::Generation> generation;
  std::string text;  // of the last piece, as is top_logprobs
  std::vector<mote_token_logprob> top_logprobs;
  int32_t finish_reason = -1;
};

struct mote_chat_template {
  std::shared_ptr<const mote::ChatTemplate> chat_template;
};

struct mote_prompt {
  mote::Prompt prompt;
};

struct mote_reply {
  std::unique_ptr<mote::ReplyParser> parser;
  std::deque<mote::ReplyEvent> events;  // not taken yet
  mote::ReplyEvent taken;
};
