// Options that somebody has given, by name, and what becomes of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "runner/generation/options/option_table.h"

namespace mote {

// Thread safety: one thread at a time; any number for const members.
class OptionSet {
 public:
  // `scopes`: bits of OptionScope; options of others are refused.
  explicit OptionSet(int32_t scopes) : scopes_(scopes) {}

  int32_t scopes() const { return scopes_; }
  bool is_given(std::string_view name) const;

  // A value as a user writes it. Errors: kInvalidArgument naming the option, the value and what would be accepted.
  Status set(std::string_view name, std::string_view text);
  // A JSON object of values; null: as if it had not been given. All of them or, after an error, none. Errors: those of
  // set.
  Status set_json(std::string_view json);
  // As if it had not been given. Errors: kInvalidArgument for an unknown name.
  Status unset(std::string_view name);

  // What cannot be written. nullptr, or an empty one: none.
  void set_grammar(std::shared_ptr<const constraints::Grammar> grammar) { grammar_ = std::move(grammar); }
  void set_prefix_cache(std::shared_ptr<PrefixCache> cache) { prefix_cache_ = std::move(cache); }
  void set_progress(Progress progress) { progress_ = std::move(progress); }

  // The model's defaults with what was given in their place. Sampling is on where do_sample or an option that asks for
  // it was given, a seed that was not given is another one each time, and temperature 0 is greedy. Errors:
  // kInvalidArgument naming the option, those of vocabulary_of and of compiling a grammar.
  Result<GenerationOptions> generation(const Model& model) const;
  // Those of a reply in a chat: the same, but as long as the context allows unless max_new_tokens was given.
  Result<GenerationOptions> reply(const Model& model) const;
  // As generation, without a model and its defaults: what was given, the rest off. Errors: also kInvalidArgument for
  // texts that stand for tokens.
  Result<SamplingOptions> sampling() const;
  // Its edits and limits are those of generation(model).
  Result<BeamSearchOptions> beam_search(const Model& model) const;
  Result<SessionOptions> session() const;
  Result<OpenOptions> model() const;

  // A JSON object of every option of these scopes: what was given, else the model's default (nullptr: the general one).
  Result<std::string> show(const Model* model) const;

 private:
  Result<const Option*> find(std::string_view name) const;
  // Over `values`.
  Status apply(OptionScope scope, OptionValues& values, const Model* model) const;
  void resolve_sampling(SamplingOptions& sampling) const;

  int32_t scopes_;
  std::map<std::string, JsonTree, std::less<>> given_;
  std::shared_ptr<const constraints::Grammar> grammar_;
  std::shared_ptr<PrefixCache> prefix_cache_;
  Progress progress_;
};

}  // namespace mote
