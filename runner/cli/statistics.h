// What a generation took, for people.
#pragma once

#include <string>
#include <vector>

#include "runner/capi/mote.h"

namespace mote::cli {

struct ReplyStatistics {
  int64_t prompt_tokens = 0;
  int64_t kept_tokens = 0;       // of the prompt, that needed no computation
  int64_t forgotten_tokens = 0;  // of the conversation, because the context was full
  int64_t generated_tokens = 0;
  double prefill_seconds = 0.0;
  double decode_seconds = 0.0;  // after the first token
  double time_to_first_token_seconds = 0.0;
  int64_t position = 0;
  int64_t context_length = 0;
  uint64_t peak_rss_bytes = 0;
  uint64_t peak_private_bytes = 0;
  mote_finish_reason finish_reason = MOTE_FINISH_NONE;
  std::string speculation;  // "23 of 27 drafted tokens accepted, ..."; "": no drafts
};

// What a generation knows: neither kept and forgotten tokens nor the context.
ReplyStatistics reply_statistics(const mote_statistics& statistics);

// "4190 tok/s", or "-" where nothing was computed.
std::string rate_text(int64_t tokens, double seconds);
// "end of sequence", "length", ...
std::string finish_text(mote_finish_reason reason);
// Tokens and speed; then memory, drafts and the end: lines that fit 80 columns.
std::vector<std::string> statistics_lines(const ReplyStatistics& statistics);
// What to tell where a limit cut a text off; "" where none did.
std::string cut_off_text(const ReplyStatistics& statistics);

}  // namespace mote::cli
