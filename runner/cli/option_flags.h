// The library's options as flags, and what was given for them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runner/cli/handles.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace mote::cli {

// By the names of options. Several texts where an option takes a list.
using GivenOptions = std::map<std::string, std::vector<std::string>>;

// What the library tells of an option: mote_describe_options.
struct OptionRow {
  std::string name;
  std::string scope;
  std::string type;
  std::string help;      // with what is accepted
  bool is_list = false;  // given as several texts
  std::vector<std::string> other_names;

  std::string flag() const;  // "top-p"
};
const std::vector<OptionRow>& option_rows();
// `name` with '-' or '_', with or without dashes before it, or as one of the flags' short names; nullptr: none.
const OptionRow* find_option(std::string_view name);

// A flag as the library names its option, where `written` is that of other software: "--temp=1" is "--temperature=1".
std::string library_flag(const std::string& written);

// All of a file. Errors: InputError naming the flag that the file was given by.
std::string read_file(const std::string& flag, const std::string& path);
// What the library makes of it; files are read. Errors: InputError naming the option.
Options make_options(int32_t scopes, const GivenOptions& given);
void set_option(const Options& options, const char* name, const std::string& value);
// Every option with what was given, else the model's default.
nlohmann::ordered_json values_of(const Options& options, const Model& model);

// The flags of some scopes' options. Stays where it is once they are added.
class OptionFlags {
 public:
  // scopes: a sum of MOTE_SCOPE_*. left_out: names of options that make no sense here.
  void add_to(CLI::App& app, int32_t scopes, std::vector<std::string_view> left_out = {});
  GivenOptions given() const;
  Options options() const { return make_options(scopes_, given()); }

 private:
  int32_t scopes_ = 0;
  std::map<std::string, const CLI::Option*> flags_;
};

// As the options' priority, for the thread that runs the command; the library leaves that as it is. Errors: InputError.
Session open_session(const Model& model, const Options& options);

}  // namespace mote::cli
