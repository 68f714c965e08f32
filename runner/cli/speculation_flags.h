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
  // Opens the draft model, if one was given, for the session.
  void attach(const Session& session) const;
  void resolve(mote_generation_options& options) const;
};

// "; drafts: 12 of 20 tokens accepted, ..."; "" where nothing was proposed or asked for.
std::string speculation_text(const mote_statistics& statistics);

}  // namespace mote::cli
