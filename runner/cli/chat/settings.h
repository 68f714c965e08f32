// What a conversation's replies are generated with: the options of `mote chat` that can also be changed by /set.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/cli/chat/conversation_file.h"
#include "runner/cli/grammar_flags.h"
#include "runner/cli/sampling_flags.h"
#include "runner/cli/speculation_flags.h"

namespace mote::cli {

// Options of a reply and what they point to.
struct ReplyOptions : ResolvedSampling {
  std::vector<std::string> stop_texts;
  std::vector<const char*> stop_strings;
  std::optional<GrammarSource> grammar;  // which options.grammar does not have yet
  std::string draft_model;               // a path; "": none
};

// The flags of a reply. Stays where it is once they are added.
class ReplyFlags {
 public:
  void add_to(CLI::App& app);
  // Those that were given on this command line.
  static GivenOptions given(const CLI::App& app);
  // The model's defaults with what was given in their place; a reply may be as long as the context allows.
  // Errors: InputError naming the option.
  void resolve(const Model& model, ReplyOptions& result) const;

  // Each option that is a number, with its value.
  std::vector<std::pair<std::string, std::string>> values(const ReplyOptions& options) const;

 private:
  SamplingFlags sampling_;
  GrammarFlags grammar_;
  SpeculationFlags speculation_;
  std::vector<std::string> stop_;
  double max_time_ = 0.0;
  const CLI::Option* temperature_ = nullptr;
  const CLI::Option* max_new_tokens_ = nullptr;
};

// Options that were given, by name and text.
class Settings {
 public:
  const GivenOptions& given() const { return given_; }

  // Names with '_' for '-' are accepted. False: there is no such option.
  static bool has(const std::string& name);
  // `text` is what the user wrote behind the name; "default" forgets what was given. Errors: InputError.
  void set(const std::string& name, const std::string& text);
  // All at once. Errors: InputError, and nothing has changed.
  void assign(const GivenOptions& options);

  // Where a seed was given, another try takes the next one.
  void advance_seed(uint64_t count);

  // Errors: InputError naming the option that the model does not take.
  void resolve(const Model& model, ReplyOptions& result) const;
  struct Line {
    std::string name;
    std::string value;  // what was given, else the model's, else "default"
    bool is_given;
  };
  std::vector<Line> lines(const Model& model) const;

 private:
  GivenOptions given_;
};

}  // namespace mote::cli
