#include "runner/cli/statistics.h"

#include <algorithm>

#include "runner/cli/terminal.h"

namespace mote::cli {
namespace {

std::string speculation_text(const mote_statistics& statistics) {
  if (statistics.num_drafts == 0) return "";
  return std::to_string(statistics.accepted_tokens) + " of " + std::to_string(statistics.proposed_tokens) +
         " drafted tokens accepted, " + number_text(statistics.speculative_speed_up) + "x as fast";
}

std::string count_text(int64_t count, const char* noun) { return std::to_string(count) + " " + noun; }

}  // namespace

ReplyStatistics reply_statistics(const mote_statistics& statistics) {
  ReplyStatistics result;
  result.prompt_tokens = statistics.prompt_tokens;
  result.generated_tokens = statistics.generated_tokens;
  result.prefill_seconds = statistics.prefill_seconds;
  result.decode_seconds = statistics.decode_seconds;
  result.time_to_first_token_seconds = statistics.time_to_first_token_seconds;
  result.peak_rss_bytes = statistics.peak_rss_bytes;
  result.peak_private_bytes = statistics.peak_private_bytes;
  result.finish_reason = statistics.finish_reason;
  result.speculation = speculation_text(statistics);
  return result;
}

std::string rate_text(int64_t tokens, double seconds) {
  return tokens > 0 && seconds > 0.0 ? number_text(static_cast<double>(tokens) / seconds) + " tok/s" : "-";
}

std::string finish_text(mote_finish_reason reason) {
  if (reason == MOTE_FINISH_EOS) return "end of sequence";
  const char* name = mote_finish_reason_name(reason);
  std::string text = name == nullptr ? "stopped" : name;
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::vector<std::string> statistics_lines(const ReplyStatistics& s) {
  const int64_t computed = s.prompt_tokens - s.kept_tokens;
  std::string tokens = "prompt " + count_text(s.prompt_tokens, "tokens");
  if (s.kept_tokens > 0) tokens += " (" + std::to_string(s.kept_tokens) + " kept)";
  if (computed > 0) tokens += " at " + rate_text(computed, s.prefill_seconds);
  tokens += ", " + std::to_string(s.generated_tokens) + " generated";
  if (s.generated_tokens > 1) tokens += " at " + rate_text(s.generated_tokens - 1, s.decode_seconds);
  tokens += ", first after " + duration_text(s.time_to_first_token_seconds);

  std::string more;
  const auto add = [&](const std::string& text) { more += (more.empty() ? "" : " | ") + text; };
  if (s.context_length > 0)
    add("context " + std::to_string(s.position) + " of " + std::to_string(s.context_length) +
        (s.forgotten_tokens > 0 ? ", " + std::to_string(s.forgotten_tokens) + " forgotten" : ""));
  if (s.peak_rss_bytes > 0)
    add("memory " + bytes_text(s.peak_rss_bytes) + ", private " + bytes_text(s.peak_private_bytes));
  if (s.finish_reason != MOTE_FINISH_NONE) add(finish_text(s.finish_reason));
  std::vector<std::string> lines{tokens};
  if (!more.empty()) lines.push_back(more);
  if (!s.speculation.empty()) lines.push_back(s.speculation);
  return lines;
}

std::string cut_off_text(const ReplyStatistics& s) {
  const std::string begin = "cut off after " + count_text(s.generated_tokens, "tokens") + ": ";
  if (s.finish_reason == MOTE_FINISH_TIME) return begin + "--max-time was over";
  if (s.finish_reason != MOTE_FINISH_LENGTH) return "";
  const bool is_full = s.context_length > 0 && s.position >= s.context_length;
  return begin + (is_full ? "the context of " + std::to_string(s.context_length) + " is full (--context-length)"
                          : "--max-new-tokens allows no more");
}

}  // namespace mote::cli
