#include "runner/cli/sampling_flags.h"

#include <array>
#include <charconv>
#include <cmath>
#include <random>

namespace mote::cli {
namespace {

// "ID=BIAS"
std::pair<std::vector<int32_t>, float> parse_bias(const std::string& text) {
  const size_t middle = text.find('=');
  const char* end = text.data() + text.size();
  int32_t id = 0;
  float bias = 0.0f;
  if (middle != std::string::npos) {
    const auto parsed_id = std::from_chars(text.data(), end, id);
    const auto parsed_bias = std::from_chars(text.data() + middle + 1, end, bias);
    const bool whole = parsed_id.ptr == text.data() + middle && parsed_bias.ptr == end;
    if (parsed_id.ec == std::errc() && parsed_bias.ec == std::errc() && whole) return {{id}, bias};
  }
  throw InputError("--logit-bias " + text + ": must be ID=BIAS, a token id and a number, such as 42=-1.5 or 42=-inf");
}

template <typename T>
std::string shortest(T value) {
  std::array<char, 64> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

}  // namespace

template <typename T>
CLI::Option* SamplingFlags::add(CLI::App& app, const char* flag, T mote_generation_options::* field, const char* help) {
  CLI::Option* option = app.add_option(flag, given_.*field, help);
  copies_.emplace_back([this, option, field](mote_generation_options& to) {
    if (option->count() > 0) to.*field = given_.*field;
  });
  shown_.emplace_back(option->get_lnames()[0],
                      [field](const mote_generation_options& from) { return shortest(from.*field); });
  return option;
}

std::vector<std::pair<std::string, std::string>> SamplingFlags::values(const mote_generation_options& options) const {
  std::vector<std::pair<std::string, std::string>> result;
  for (const auto& [name, value] : shown_) result.emplace_back(name, value(options));
  return result;
}

void SamplingFlags::add_to(CLI::App& app) {
  using Options = mote_generation_options;
  add(app, "--max-new-tokens", &Options::max_new_tokens, "Stop after this many tokens (0: when the context is full)")
      ->check(CLI::NonNegativeNumber);
  add(app, "--min-new-tokens", &Options::min_new_tokens, "No end-of-sequence token before this many");
  app.add_flag("--greedy", greedy_, "Always take the likeliest token");
  seed_ = add(app, "--seed", &Options::seed, "The same seed gives the same text (default: another one each time)");
  sampling_ = {
      seed_,
      add(app, "--temperature", &Options::temperature, "Above 1: more varied; below: more predictable"),
      add(app, "--top-k", &Options::top_k, "Sample among the K likeliest tokens (0: off)"),
      add(app, "--top-p", &Options::top_p, "Sample among the likeliest tokens with this total probability (1: off)"),
      add(app, "--min-p", &Options::min_p, "Leave out tokens below this fraction of the likeliest one (0: off)"),
      add(app, "--typical-p", &Options::typical_p,
          "Sample among the tokens of the usual surprise with this total probability (1: off)"),
      add(app, "--xtc-probability", &Options::xtc_probability, "How often to leave the likeliest tokens out (0: off)"),
  };
  add(app, "--xtc-threshold", &Options::xtc_threshold,
      "XTC: the probability from which tokens are left out, but for the last (0.1)");
  add(app, "--repetition-penalty", &Options::repetition_penalty, "Above 1: avoid tokens that occurred (1: off)");
  add(app, "--repetition-window", &Options::repetition_window, "Tokens that the repetition penalty looks at (0: all)");
  add(app, "--frequency-penalty", &Options::frequency_penalty,
      "Taken off a token's logit for each time that it was generated (0: off)");
  add(app, "--presence-penalty", &Options::presence_penalty,
      "Taken off the logit of a token that was generated (0: off)");
  add(app, "--no-repeat-ngram-size", &Options::no_repeat_ngram_size, "No so many tokens in a row occur twice (0: off)");
  add(app, "--dry-multiplier", &Options::dry_multiplier, "DRY: how much to avoid going on with a repetition (0: off)");
  add(app, "--dry-base", &Options::dry_base, "DRY: growth of the penalty with each repeated token (1.75)");
  add(app, "--dry-allowed-length", &Options::dry_allowed_length, "DRY: the shortest repetition that costs (2)");
  add(app, "--dry-window", &Options::dry_window, "DRY: tokens to look at (0: all)");
  app.add_option("--dry-breaker", dry_breakers_,
                 "DRY: a text that ends repetitions, by its last token; may be given several times")
      ->take_all();
  app.add_option("--logit-bias", logit_bias_,
                 "A token id and what is added to its logit (-inf: never); may be given several times")
      ->type_name("ID=BIAS")
      ->take_all();
  app.add_option("--bad-words", bad_words_,
                 "A text that is never generated, nor with a space before it; may be given several times")
      ->take_all();
}

void SamplingFlags::resolve(const Model& model, ResolvedSampling& result) const {
  mote_generation_options& options = result.options;
  check([&](mote_error* error) { return mote_generation_options_default(model.get(), &options, error); });
  for (const auto& copy : copies_) copy(options);
  bool asks_for_sampling = options.do_sample != 0;
  for (const CLI::Option* option : sampling_) asks_for_sampling = asks_for_sampling || option->count() > 0;
  options.do_sample = !greedy_ && asks_for_sampling;
  if (seed_->count() == 0) options.seed = std::random_device()();
  resolve_lists(model, result);
}

void SamplingFlags::resolve_lists(const Model& model, ResolvedSampling& result) const {
  if (result.options.dry_multiplier != 0.0f) {
    for (const std::string& text : dry_breakers_) {
      const std::vector<int32_t> ids = tokenize(model, text, false, false);
      if (!ids.empty()) result.breakers.push_back(ids.back());
    }
  }
  for (const std::string& text : logit_bias_) result.sequences.push_back(parse_bias(text));
  for (const std::string& word : bad_words_) {
    if (word.empty()) throw InputError("--bad-words: the text is empty");
    for (const char* space : {"", " "})
      result.sequences.emplace_back(tokenize(model, space + word, false, false), -HUGE_VALF);
  }
  for (const auto& [ids, bias] : result.sequences) result.biases.push_back({ids.data(), ids.size(), bias});
  result.options.dry_sequence_breakers = result.breakers.data();
  result.options.num_dry_sequence_breakers = result.breakers.size();
  result.options.sequence_bias = result.biases.data();
  result.options.num_sequence_bias = result.biases.size();
}

}  // namespace mote::cli
