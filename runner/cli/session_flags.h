// The options of every verb that opens a session.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

#include "runner/cli/handles.h"

namespace mote::cli {

struct SessionFlags {
  int32_t context_length = 0;
  std::string kv_type = "float32";
  int32_t threads = 0;
  int32_t prefill_chunk = 0;
  std::optional<std::string> cpus;
  std::string priority = "normal";
  std::string overflow = "refuse";
  int64_t num_keep = -1;  // -1: not given
  bool no_mmap = false;
  std::string backend = "auto";

  bool shifts() const { return overflow == "shift"; }
  void add_to(CLI::App& app);
  mote_session_options options() const;  // points into this
  Model load(const std::string& path) const {
    return open_model(path, no_mmap ? MOTE_LOAD_READ : MOTE_LOAD_MAP, backend);
  }
  Session open(const Model& model) const;
};

}  // namespace mote::cli
