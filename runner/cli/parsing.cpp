#include "runner/cli/parsing.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/closest.h"
#include "runner/cli/option_flags.h"
#include "runner/cli/terminal.h"
#include "runner/cli/verbs.h"

namespace mote::cli {
namespace {

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

constexpr int32_t kScopesOfVerbs = MOTE_SCOPE_GENERATION | MOTE_SCOPE_SESSION | MOTE_SCOPE_MODEL;  // that verbs have

const CLI::App* verb_of(const CLI::App& app, const std::string& name) {
  const std::vector<const CLI::App*> verbs = verbs_of(app);
  const auto found = std::ranges::find_if(verbs, [&](const CLI::App* verb) { return verb->get_name() == name; });
  return found == verbs.end() ? nullptr : *found;
}

std::vector<std::string> long_flags(const CLI::App& verb) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

// What the library says of a name that no flag has; "" if it knows nothing better than its list.
std::string answer_of_library(const std::string& name) {
  mote_options* handle = nullptr;
  check([&](mote_error* error) { return mote_options_open(kScopesOfVerbs, &handle, error); });
  const Options options(handle);
  auto error = sized<mote_error>();
  if (mote_options_set(handle, name.c_str(), nullptr, &error) == MOTE_OK) return "";
  const std::string text = error.message;
  const size_t answer = text.find("': ");
  const bool is_list = answer == std::string::npos || text.find(": must be one of ") != std::string::npos ||
                       text.find(": did you mean ") != std::string::npos;
  return is_list ? "" : text.substr(answer + 1);
}

// One sentence about the first word that a verb does not take.
std::string unexpected(const CLI::App& verb, const std::string& word) {
  const std::string flag = word.substr(0, word.find('='));
  if (!flag.starts_with('-')) return "'" + word + "' is one word too many";
  std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  std::replace(name.begin(), name.end(), '-', '_');
  const std::vector<std::string> flags = long_flags(verb);
  const std::vector<std::string_view> views(flags.begin(), flags.end());
  std::string more = answer_of_library(name);
  if (more.empty()) more = did_you_mean(flag, views);
  if (more.empty()) more = ": 'mote " + verb.get_name() + " --help' lists those that there are";
  return "there is no option '" + flag + "'" + more;
}

std::string text_of(const CLI::App& app, const CLI::ParseError& error, const std::string& first) {
  const CLI::App* verb = verb_of(app, first);
  if (verb == nullptr) {
    std::vector<std::string_view> names;
    for (const CLI::App* each : verbs_of(app)) names.emplace_back(each->get_name());
    if (first.empty()) return "no verb was given: 'mote --help' lists them";
    const std::string meant = did_you_mean(first, names);
    return (first.starts_with('-') ? "there is no option '" : "there is no verb '") + first + "'" +
           (meant.empty() ? ": 'mote --help' lists those that there are" : meant);
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> words = verb->remaining();
    const auto flag = std::ranges::find_if(words, [](const std::string& word) { return word.starts_with('-'); });
    if (!words.empty()) return unexpected(*verb, flag == words.end() ? words[0] : *flag);
  }
  std::string text = error.what();
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return text + ": 'mote " + verb->get_name() + " --help' tells more";
}

// As CLI11 takes them: the last one first.
std::vector<std::string> words_of(const CLI::App& app, std::span<const std::string> given) {
  std::vector<std::string> words;
  const CLI::App* verb = given.empty() ? nullptr : verb_of(app, given[0]);
  bool are_flags = verb != nullptr;
  for (const std::string& word : given) {
    are_flags = are_flags && word != "--";
    const bool is_own = !are_flags || verb->get_option_no_throw(word.substr(0, word.find('='))) != nullptr;
    words.push_back(is_own ? word : library_flag(word));
  }
  std::ranges::reverse(words);
  return words;
}

}  // namespace

CLI::Validator at_least(int64_t least) {
  const std::string wanted = "an integer, " + std::to_string(least) + " or more";
  const auto check = [=](const std::string& text) {
    int64_t value = 0;
    return CLI::detail::lexical_cast(text, value) && value >= least ? "" : text + ": must be " + wanted;
  };
  return CLI::Validator(check, wanted);
}

int fail(const char* message) {
  std::fprintf(stderr, "%s %s\n", red("error:", stderr).c_str(), message);
  return kExitBadInput;
}

std::optional<int> parse(CLI::App& app, std::span<const std::string> words) {
  const std::span<const std::string> given = words.subspan(std::min<size_t>(1, words.size()));
  try {
    app.parse(words_of(app, given));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // help or the version
    return fail(text_of(app, error, given.empty() ? "" : given[0]).c_str());
  }
  return std::nullopt;
}

}  // namespace mote::cli
