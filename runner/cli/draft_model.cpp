#include "runner/cli/draft_model.h"

#include <CLI/CLI.hpp>

#include "runner/cli/terminal.h"

namespace mote::cli {

void add_draft_model(CLI::App& app, std::string& path) {
  app.add_option("--draft", path,
                 "A smaller .mote file with the same tokenizer that proposes tokens; the text stays the same")
      ->type_name("small.mote");
}

void set_draft_model(const Session& session, const std::string& path) {
  const Model draft = path.empty() ? nullptr : open_model(path);
  check([&](mote_error* error) { return mote_session_set_draft_model(session.get(), draft.get(), error); });
}

std::string speculation_text(const mote_statistics& statistics) {
  if (statistics.num_drafts == 0) return "";
  return " | drafts: " + std::to_string(statistics.accepted_tokens) + " of " +
         std::to_string(statistics.proposed_tokens) + " tokens accepted, " + number_text(statistics.mean_run_length) +
         " a call, " + number_text(statistics.speculative_speed_up) + "x as fast";
}

}  // namespace mote::cli
