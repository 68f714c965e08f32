// The flags of `run` that choose tokens.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "runner/cli/handles.h"

namespace mote::cli {

// Options of a generation and the lists that they point to. Not copied: it points into itself.
struct ResolvedSampling {
  ResolvedSampling() = default;
  ResolvedSampling(const ResolvedSampling&) = delete;
  ResolvedSampling& operator=(const ResolvedSampling&) = delete;

  mote_generation_options options = sized<mote_generation_options>();
  std::vector<int32_t> breakers;
  std::vector<std::pair<std::vector<int32_t>, float>> sequences;
  std::vector<mote_sequence_bias> biases;
};

// Stays where it is once its flags are added.
class SamplingFlags {
 public:
  void add_to(CLI::App& app);
  // The model's defaults, with what was given on the command line in their place.
  void resolve(const Model& model, ResolvedSampling& result) const;
  // The names of the options that are numbers, as on the command line but without the dashes, and their values in
  // `options`.
  std::vector<std::pair<std::string, std::string>> values(const mote_generation_options& options) const;

 private:
  template <typename T>
  CLI::Option* add(CLI::App& app, const char* flag, T mote_generation_options::* field, const char* help);
  void resolve_lists(const Model& model, ResolvedSampling& result) const;

  mote_generation_options given_ = sized<mote_generation_options>();
  std::vector<std::function<void(mote_generation_options&)>> copies_;  // of what was given
  std::vector<std::pair<std::string, std::function<std::string(const mote_generation_options&)>>> shown_;
  std::vector<const CLI::Option*> sampling_;  // any of these asks for sampling
  const CLI::Option* seed_ = nullptr;
  std::vector<std::string> dry_breakers_ = {"\n", ":", "\"", "*"};
  std::vector<std::string> logit_bias_;
  std::vector<std::string> bad_words_;
  bool greedy_ = false;
};

}  // namespace mote::cli
