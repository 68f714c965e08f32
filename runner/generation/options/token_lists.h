// Options whose values are tokens.
#pragma once

#include "runner/generation/options/option_table.h"

namespace mote {

// Each as Option::read; they add to what is there.
Status read_sequence_bias(const Option& option, const JsonTree& from, OptionValues& to, const Model* model);
Status read_logit_bias(const Option& option, const JsonTree& from, OptionValues& to, const Model* model);
Status read_bad_words(const Option& option, const JsonTree& from, OptionValues& to, const Model* model);
Status read_bad_words_ids(const Option& option, const JsonTree& from, OptionValues& to, const Model* model);
Status read_suppress_tokens(const Option& option, const JsonTree& from, OptionValues& to, const Model* model);
// In the place of what is there.
Status read_dry_sequence_breakers(const Option& option, const JsonTree& from, OptionValues& to, const Model* model);

std::string show_sequence_bias(const OptionValues& values);
std::string show_dry_sequence_breakers(const OptionValues& values);

}  // namespace mote
