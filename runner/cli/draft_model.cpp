#include "runner/cli/draft_model.h"

#include <CLI/CLI.hpp>

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

}  // namespace mote::cli
