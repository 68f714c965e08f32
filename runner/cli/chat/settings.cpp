#include "runner/cli/chat/settings.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "runner/cli/draft_model.h"

namespace mote::cli {
namespace {

constexpr const char* kDraft = "draft";  // beside the library's options: a path

const std::vector<std::string_view>& left_out() {
  static const std::vector<std::string_view> names = {"ignore_eos", "skip_special_tokens", "skip_eos", "logprobs",
                                                      "top_logprobs"};
  return names;
}

// As the library names it; "" if replies have no such option.
std::string name_of(const std::string& written) {
  if (written == kDraft || written == "--draft") return kDraft;
  const OptionRow* row = find_option(written);
  const bool is_setting = row != nullptr && row->scope == "generation" &&
                          std::find(left_out().begin(), left_out().end(), row->name) == left_out().end();
  return is_setting ? row->name : "";
}

// A JSON text, for an option that takes several also a list, or the text as it is.
std::vector<std::string> values_of(const std::string& name, const std::string& text) {
  const OptionRow* row = find_option(name);
  const Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_string()) return {parsed.get<std::string>()};
  if (!parsed.is_array() || row == nullptr || !row->is_list) return {text};
  std::vector<std::string> values;
  for (const Json& item : parsed) {
    if (row->type != "token_ids" && !item.is_string())
      throw InputError(name + " " + text + ": must be a list of texts such as [\"a\", \"b\"]");
    values.push_back(item.is_string() ? item.get<std::string>() : item.dump());
  }
  return values;
}

std::string shown_values(const std::vector<std::string>& values) {
  return values.size() == 1 ? values[0] : dump(Json(values));
}

}  // namespace

void ReplyFlags::add_to(CLI::App& app) {
  options_.add_to(app, MOTE_SCOPE_GENERATION, left_out());
  add_draft_model(app, draft_model_);
}

GivenOptions ReplyFlags::given() const {
  GivenOptions result = options_.given();
  if (!draft_model_.empty()) result[kDraft] = {draft_model_};
  return result;
}

std::string Settings::refusal(const std::string& name) {
  mote_options* handle = nullptr;
  check([&](mote_error* error) { return mote_options_open(MOTE_SCOPE_GENERATION, &handle, error); });
  const Options options(handle);
  auto error = sized<mote_error>();
  const bool is_known = mote_options_set(handle, name.c_str(), nullptr, &error) == MOTE_OK;
  return is_known ? "'" + name + "' cannot be set in a chat" : error.message;
}

bool Settings::has(const std::string& name) { return !name_of(name).empty(); }

void Settings::set(const std::string& written, const std::string& text) {
  GivenOptions changed = given_;
  const std::string name = name_of(written);
  if (text == "default") {
    changed.erase(name);
  } else {
    changed[name] = values_of(name, text);
  }
  assign(changed);
}

void Settings::assign(const GivenOptions& options) {
  Settings changed;
  for (const auto& [written, values] : options) {
    const std::string name = name_of(written);
    if (name.empty()) throw InputError(refusal(written));
    changed.given_[name] = values;
  }
  (void)changed.options();
  given_ = changed.given_;
}

void Settings::advance_seed(uint64_t count) {
  const auto seed = given_.find("seed");
  if (seed != given_.end()) seed->second = {std::to_string(std::strtoull(seed->second[0].c_str(), nullptr, 0) + count)};
}

Options Settings::options() const {
  GivenOptions given = given_;
  given.erase(kDraft);
  return make_options(MOTE_SCOPE_GENERATION, given);
}

std::string Settings::draft_model() const {
  const auto found = given_.find(kDraft);
  return found == given_.end() ? "" : found->second.back();
}

std::vector<Settings::Line> Settings::lines(const Model& model) const {
  const Json values = cli::values_of(options(), model);
  std::vector<Line> lines;
  const auto add = [&](const std::string& name, const std::string& shown) {
    const auto found = given_.find(name);
    lines.push_back({name, found == given_.end() ? shown : shown_values(found->second), found != given_.end()});
  };
  for (const OptionRow& row : option_rows()) {
    if (name_of(row.name).empty()) continue;
    const Json& value = values[row.name];
    const bool is_said = !value.is_null() && !(value.is_array() && value.empty());
    add(row.name, value.is_string() ? value.get<std::string>() : is_said ? dump(value) : "default");
    if (row.name == "seed" && !lines.back().is_given) lines.back().value = "another one each time";
    if (row.name == "max_new_tokens" && !lines.back().is_given) lines.back().value = "until the context is full";
  }
  add(kDraft, "default");
  return lines;
}

}  // namespace mote::cli
