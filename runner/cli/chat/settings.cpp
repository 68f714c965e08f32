#include "runner/cli/chat/settings.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace mote::cli {
namespace {

// The flags as a parser of their own, with options that were given by text.
struct Parsed {
  explicit Parsed(const GivenOptions& options) {
    flags.add_to(app);
    std::vector<std::string> arguments;
    for (const auto& [name, values] : options) {
      for (const std::string& value : values) arguments.push_back("--" + name + "=" + value);
    }
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& error) { throw InputError(error.what()); }
  }

  CLI::App app;
  ReplyFlags flags;
};

std::string option_name(const std::string& name) {
  std::string result = name;
  if (result.starts_with("--")) result.erase(0, 2);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

bool is_setting(const CLI::Option* option) {
  return !option->get_lnames().empty() && option->get_lnames()[0] != "help";
}

bool takes_several(const std::string& name) {
  const Parsed parsed({});
  const CLI::Option* option = parsed.app.get_option_no_throw("--" + name);
  return option != nullptr && option->get_items_expected_max() > 1;
}

std::vector<std::string> option_names() {
  const Parsed parsed({});
  std::vector<std::string> names;
  for (const CLI::Option* option : parsed.app.get_options(is_setting)) names.push_back(option->get_lnames()[0]);
  return names;
}

std::string joined_names() {
  std::string text;
  for (const std::string& name : option_names()) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// A JSON text, for an option that takes several also a list of texts, or the text as it is.
std::vector<std::string> values_of(const std::string& name, const std::string& text) {
  const Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_string()) return {parsed.get<std::string>()};
  if (!parsed.is_array() || !takes_several(name)) return {text};
  std::vector<std::string> values;
  for (const Json& item : parsed) {
    if (!item.is_string()) throw InputError(name + " " + text + ": must be a list of texts such as [\"a\", \"b\"]");
    values.push_back(item.get<std::string>());
  }
  return values;
}

// By the library's own rules, which are also those of a generation.
void check_options(const Model& model, const ReplyOptions& options) {
  const auto count = static_cast<size_t>(info_of(model).vocab_size);
  const std::vector<float> logits(count);
  std::vector<float> probabilities(count);
  check([&](mote_error* error) {
    return mote_sampling_probabilities(logits.data(), count, nullptr, 0, 0, &options.options, probabilities.data(),
                                       error);
  });
}

std::string joined(const std::vector<std::string>& values) {
  return values.size() == 1 ? values[0] : dump(Json(values));
}

}  // namespace

void ReplyFlags::add_to(CLI::App& app) {
  sampling_.add_to(app);
  temperature_ = app.get_option("--temperature");
  max_new_tokens_ = app.get_option("--max-new-tokens");
  app.add_option("--stop", stop_, "End before this text; may be given several times")->take_all();
  grammar_.add_to(app);
  speculation_.add_to(app);
  app.add_option("--max-time", max_time_, "End a reply after this many seconds (0: no limit)")
      ->check(CLI::NonNegativeNumber);
}

GivenOptions ReplyFlags::given(const CLI::App& app) {
  GivenOptions result;
  for (const std::string& name : option_names()) {
    const CLI::Option* option = app.get_option_no_throw("--" + name);
    if (option != nullptr && option->count() > 0) result[name] = option->results();
  }
  return result;
}

void ReplyFlags::resolve(const Model& model, ReplyOptions& result) const {
  sampling_.resolve(model, result);
  mote_generation_options& options = result.options;
  if (max_new_tokens_->count() == 0) options.max_new_tokens = 0;
  if (temperature_->count() > 0 && options.temperature == 0.0f) {
    options.temperature = 1.0f;
    options.do_sample = 0;
  }
  result.stop_texts = stop_;
  for (const std::string& text : result.stop_texts) {
    if (text.empty()) throw InputError("--stop: the text is empty");
    result.stop_strings.push_back(text.c_str());
  }
  options.stop_strings = result.stop_strings.data();
  options.num_stop_strings = result.stop_strings.size();
  options.max_time = max_time_;
  result.grammar = grammar_.source();
  result.draft_model = speculation_.draft_model;
  speculation_.resolve(options);
  check_options(model, result);
}

std::vector<std::pair<std::string, std::string>> ReplyFlags::values(const ReplyOptions& options) const {
  return sampling_.values(options.options);
}

bool Settings::has(const std::string& name) {
  const std::vector<std::string> names = option_names();
  return std::find(names.begin(), names.end(), option_name(name)) != names.end();
}

void Settings::set(const std::string& name, const std::string& text) {
  GivenOptions changed = given_;
  const std::string option = option_name(name);
  if (text == "default") {
    changed.erase(option);
  } else {
    changed[option] = values_of(option, text);
  }
  assign(changed);
}

void Settings::assign(const GivenOptions& options) {
  for (const auto& [name, values] : options) {
    if (!has(name)) throw InputError("there is no option '" + name + "': it must be one of " + joined_names());
  }
  const Parsed parsed(options);
  given_ = options;
}

void Settings::advance_seed(uint64_t count) {
  const auto seed = given_.find("seed");
  if (seed != given_.end()) seed->second = {std::to_string(std::strtoull(seed->second[0].c_str(), nullptr, 0) + count)};
}

void Settings::resolve(const Model& model, ReplyOptions& result) const { Parsed(given_).flags.resolve(model, result); }

std::vector<Settings::Line> Settings::lines(const Model& model) const {
  const Parsed parsed(given_);
  ReplyOptions options;
  parsed.flags.resolve(model, options);
  std::map<std::string, std::string> defaults;
  for (const auto& [name, value] : parsed.flags.values(options)) defaults[name] = value;
  if (given_.count("seed") == 0) defaults["seed"] = "another one each time";
  if (defaults["max-new-tokens"] == "0") defaults["max-new-tokens"] = "until the context is full";
  std::vector<Line> lines;
  for (const CLI::Option* option : parsed.app.get_options(is_setting)) {
    const std::string& name = option->get_lnames()[0];
    const auto found = given_.find(name);
    const auto value = defaults.find(name);
    const std::string shown = value == defaults.end() ? "default" : value->second;
    lines.push_back({name, found == given_.end() ? shown : joined(found->second), found != given_.end()});
  }
  return lines;
}

}  // namespace mote::cli
