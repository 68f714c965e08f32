#include "runner/cli/option_flags.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/path.h"
#include "runner/cli/system.h"

namespace mote::cli {
namespace {

using Json = nlohmann::ordered_json;

const std::map<std::string, int32_t> kScopeOfName = {{"generation", MOTE_SCOPE_GENERATION},
                                                     {"beam_search", MOTE_SCOPE_BEAM_SEARCH},
                                                     {"session", MOTE_SCOPE_SESSION},
                                                     {"model", MOTE_SCOPE_MODEL}};

// Other spellings of flags, as CLI11 takes them; behind '!' the opposite.
const std::map<std::string, std::string> kOtherSpellings = {{"do_sample", "!--greedy"},
                                                            {"skip_special_tokens", "!--show-special"},
                                                            {"adapters", "--adapter"},
                                                            {"stop_strings", "--stop"},
                                                            {"stop_token_ids", "--stop-token-id"},
                                                            {"dry_sequence_breakers", "--dry-breaker"},
                                                            {"max_new_tokens", "-n"},
                                                            {"threads", "-t"}};

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// A schema itself, or the file that has it.
std::string schema_of(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_schema = text == "true" || text == "false" || (first != std::string::npos && text[first] == '{');
  return is_schema ? text : read_file("--json-schema", text);
}

// "ID=BIAS" for each.
std::string bias_json(const std::vector<std::string>& values) {
  Json biases = Json::object();
  for (const std::string& text : values) {
    const size_t middle = std::min(text.find('='), text.size());
    const std::string bias = middle < text.size() ? text.substr(middle + 1) : "";
    const Json number = Json::parse(bias, nullptr, false);
    if (!number.is_number() && bias != "-inf") {
      throw InputError("--logit-bias " + text +
                       ": must be ID=BIAS, a token id and a number, such as 42=-1.5 or 42=-inf");
    }
    biases[text.substr(0, middle)] = number.is_number() ? number : Json(bias);
  }
  return biases.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string id_json(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ", ") + value;
  return "[" + text + "]";
}

// What was given as the library takes it.
std::string value_text(const OptionRow& row, const std::vector<std::string>& values) {
  if (row.name == "json_schema") return schema_of(values.back());
  if (row.name == "grammar") return read_file("--grammar", values.back());
  if (!row.is_list) return values.back();
  if (row.name == "logit_bias") return bias_json(values);
  if (row.type == "token_ids") return id_json(values);
  return Json(values).dump(-1, ' ', false, Json::error_handler_t::replace);
}

OptionRow read_row(const Json& json) {
  OptionRow row{json["name"], json["scope"], json["type"], json["help"], false, json["other_names"]};
  row.is_list = row.type == "texts" || row.type == "token_ids" || row.type == "tokens" || row.name == "logit_bias";
  if (row.name == "json_schema")
    row.help += ": a file, or the schema itself";
  else if (row.name == "grammar")
    row.help += ": a file";
  else if (row.name == "logit_bias")
    row.help += ": a token id and a number (-inf: never)";
  else if (row.type != "flag" && row.type != "text" && row.type != "texts")
    row.help += ": " + json["accepted"].get<std::string>();
  if (row.is_list) row.help += "; may be given several times";
  return row;
}

std::string spellings(const OptionRow& row) {
  std::string text = "--" + row.flag();
  if (row.type == "flag") text += ",!--no-" + row.flag();
  const auto other = kOtherSpellings.find(row.name);
  return other == kOtherSpellings.end() ? text : text + "," + other->second;
}

std::string type_name(const OptionRow& row) {
  if (row.name == "json_schema") return "FILE|JSON";
  if (row.name == "grammar") return "FILE";
  if (row.name == "logit_bias") return "ID=BIAS";
  if (row.type == "integer" || row.type == "token_ids") return "INT";
  if (row.name == "adapters") return "FILE[=WEIGHT]";
  return row.type == "number" ? "FLOAT" : row.type == "texts" || row.type == "tokens" ? "TEXT" : "";
}

}  // namespace

std::string read_file(const std::string& flag, const std::string& path) {
  std::ifstream file(to_path(path), std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) throw InputError(flag + " " + path + ": cannot be read: " + std::strerror(errno));
  return text;
}

std::string OptionRow::flag() const { return dashed(name); }

const std::vector<OptionRow>& option_rows() {
  static const std::vector<OptionRow> rows = [] {
    std::vector<OptionRow> read;
    const std::string text =
        take_string([](char** json, mote_error* error) { return mote_describe_options(json, error); });
    for (const Json& row : Json::parse(text)) read.push_back(read_row(row));
    return read;
  }();
  return rows;
}

const OptionRow* find_option(std::string_view written) {
  std::string name(written.substr(std::min(written.find_first_not_of('-'), written.size())));
  name = dashed(name);
  for (const OptionRow& row : option_rows()) {
    const auto other = kOtherSpellings.find(row.name);
    if (row.flag() == name || (other != kOtherSpellings.end() && other->second == "--" + name)) return &row;
    if (std::ranges::any_of(row.other_names, [&](const std::string& each) { return dashed(each) == name; }))
      return &row;
  }
  return nullptr;
}

void set_option(const Options& options, const char* name, const std::string& value) {
  check([&](mote_error* error) { return mote_options_set(options.get(), name, value.c_str(), error); });
}

Options make_options(int32_t scopes, const GivenOptions& given) {
  mote_options* handle = nullptr;
  check([&](mote_error* error) { return mote_options_open(scopes, &handle, error); });
  Options options(handle);
  for (const auto& [name, values] : given) {
    const OptionRow* row = find_option(name);
    set_option(options, name.c_str(), row == nullptr ? values.back() : value_text(*row, values));
  }
  return options;
}

Json values_of(const Options& options, const Model& model) {
  return Json::parse(take_string(
      [&](char** json, mote_error* error) { return mote_options_values(options.get(), model.get(), json, error); }));
}

std::string library_flag(const std::string& written) {
  const size_t end = std::min(written.find('='), written.size());
  if (!written.starts_with("--") || end <= 3) return written;
  const OptionRow* row = find_option(std::string_view(written).substr(0, end));
  return row == nullptr ? written : "--" + row->flag() + written.substr(end);
}

void OptionFlags::add_to(CLI::App& app, int32_t scopes, std::vector<std::string_view> left_out) {
  scopes_ = scopes;
  for (const OptionRow& row : option_rows()) {
    const bool is_left_out = std::find(left_out.begin(), left_out.end(), row.name) != left_out.end();
    if ((scopes & kScopeOfName.at(row.scope)) == 0 || is_left_out) continue;
    CLI::Option* flag = row.type == "flag" ? app.add_flag(spellings(row), row.help)
                                           : app.add_option(spellings(row), row.help)->type_name(type_name(row));
    if (row.is_list) flag->take_all()->allow_extra_args(false);
    flags_[row.name] = flag;
  }
}

GivenOptions OptionFlags::given() const {
  GivenOptions result;
  for (const auto& [name, flag] : flags_) {
    if (flag->count() > 0) result[name] = flag->results();
  }
  return result;
}

// The session's threads were accepted with this priority, so a failure here means that there are none.
Session open_session(const Model& model, const Options& options) {
  mote_session* handle = nullptr;
  check([&](mote_error* error) { return mote_session_open(model.get(), options.get(), &handle, error); });
  Session session(handle);
  const std::string priority = values_of(options, model).value("priority", "normal");
  if (priority == "normal") return session;
  const std::string refusal = set_process_priority(priority == "high");
  if (!refusal.empty() && priority == "high") throw InputError("--priority high: the system refuses: " + refusal);
  return session;
}

}  // namespace mote::cli
