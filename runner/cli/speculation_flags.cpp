#include "runner/cli/speculation_flags.h"

#include <algorithm>
#include <array>

#include "runner/cli/terminal.h"

namespace mote::cli {
namespace {

constexpr std::array<const char*, 4> kModes = {"auto", "off", "lookup", "draft"};  // in the order of MOTE_SPECULATIVE_*

}  // namespace

void SpeculationFlags::add_to(CLI::App& app) {
  app.add_option("--draft", draft_model,
                 "A smaller .mote file with the same tokenizer that proposes tokens; the text stays the same")
      ->type_name("small.mote");
  app.add_option("--speculative", speculative,
                 "Propose tokens and verify several at once: auto (where it is faster), off, lookup (from "
                 "the text itself) or draft (with the draft model)")
      ->check(CLI::IsMember({"auto", "off", "lookup", "draft"}))
      ->capture_default_str();
  app.add_option("--draft-tokens", draft_tokens, "Tokens to propose at a time (0: as many as pay)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

void set_draft_model(const Session& session, const std::string& path) {
  const Model draft = path.empty() ? nullptr : open_model(path);
  check([&](mote_error* error) { return mote_session_set_draft_model(session.get(), draft.get(), error); });
}

void SpeculationFlags::resolve(mote_generation_options& options) const {
  options.speculative = static_cast<int32_t>(std::find(kModes.begin(), kModes.end(), speculative) - kModes.begin());
  options.draft_tokens = draft_tokens;
}

std::string speculation_text(const mote_statistics& statistics) {
  if (statistics.num_drafts == 0) return "";
  return " | drafts: " + std::to_string(statistics.accepted_tokens) + " of " +
         std::to_string(statistics.proposed_tokens) + " tokens accepted, " + number_text(statistics.mean_run_length) +
         " a call, " + number_text(statistics.speculative_speed_up) + "x as fast";
}

}  // namespace mote::cli
