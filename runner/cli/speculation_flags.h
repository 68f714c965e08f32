// The flags of speculative decoding.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "runner/cli/handles.h"

namespace mote::cli {

struct SpeculationFlags {
  std::string speculative = "auto";
  std::string draft_model;
  int32_t draft_tokens = 0;

  void add_to(CLI::App& app);
  void resolve(mote_generation_options& options) const;
};

// Opens the draft model for the session; "" takes the session's away.
void set_draft_model(const Session& session, const std::string& path);

// "; drafts: 12 of 20 tokens accepted, ..."; "" where nothing was proposed or asked for.
std::string speculation_text(const mote_statistics& statistics);

}  // namespace mote::cli
