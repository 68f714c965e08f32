#include <cstdio>
#include <cstdlib>

#include "base/utf8.h"
#include "runner/generation/options/option_set.h"
#include "tests/fuzz/targets.h"

namespace mote::test {
namespace {

// A finding: something that is no crash but must not be.
void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

void use(const OptionSet& options) {
  const std::string shown = *options.show(nullptr);
  OptionSet again(kAllScopes);
  require(is_valid_utf8(shown), "shown as what is no UTF-8");
  require(again.set_json(shown).ok(), "shown as what is refused");
  require(*again.show(nullptr) == shown, "shown otherwise the second time");
  require(options.session().ok() && options.model().ok(), "taken, but not for a session or a model");
  const auto sampling = options.sampling();
  require(sampling.ok() || !sampling.status().message().empty(), "refused without a message");
}

void expect_refused(const Status& status, const OptionSet& options) {
  require(status.code() == Code::kInvalidArgument && !status.message().empty(), "refused without a message");
  require(is_valid_utf8(status.message()), "refused with a message that is no UTF-8");
  require(*options.show(nullptr) == *OptionSet(kAllScopes).show(nullptr), "refused and taken");
}

std::string_view text_of(Input input) { return {reinterpret_cast<const char*>(input.data()), input.size()}; }

// An object of values.
void fuzz_options_json(Input input) {
  OptionSet options(kAllScopes);
  const Status status = options.set_json(text_of(input));
  status.ok() ? use(options) : expect_refused(status, options);
}

// A value of the option that the first byte tells.
void fuzz_option_text(Input input) {
  if (input.empty()) return;
  const auto index = static_cast<size_t>(input[0]) % all_options().size();
  OptionSet options(kAllScopes);
  const Status status = options.set(all_options()[index].name, text_of(input.subspan(1)));
  status.ok() ? use(options) : expect_refused(status, options);
}

std::vector<std::string> json_seeds() {
  return {*OptionSet(kAllScopes).show(nullptr),
          R"({"temperature": 0.7, "seed": 18446744073709551615, "stop_strings": ["###", "\u00e9\ud83d\ude00"],
              "logit_bias": {"42": "-inf"}, "sequence_bias": [[[5, 6], -1.5]], "bad_words": ["a"], "top_k": null})",
          R"({"json_schema": {"type": "object", "properties": {"a": {"enum": [1, null]}}}, "cpus": [0, 3],
              "early_stopping": true, "kv_dtype": "int8", "dry_sequence_breakers": ["\n", 7], "bad_words_ids": [[1]]})"};
}

std::vector<std::string> text_seeds() {
  std::vector<std::string> seeds;
  for (size_t i = 0; i < all_options().size(); ++i) {
    const char first = static_cast<char>(i);
    for (const std::string& text : {all_options()[i].show(default_values()), std::string("+1.50e-1"), std::string("7"),
                                    std::string(R"([[[1, 2], "-inf"]])"), std::string(R"(["a", "\ud83d\ude00"])")})
      seeds.push_back(first + text);
  }
  return seeds;
}

}  // namespace

const std::vector<Target>& fuzz_targets() {
  static const std::vector<Target> targets{{"options_json", fuzz_options_json, json_seeds},
                                           {"option_text", fuzz_option_text, text_seeds}};
  return targets;
}

}  // namespace mote::test
