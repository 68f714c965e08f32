// What a conversation's replies are generated with: the options of `mote chat` that can also be changed by /set.
#pragma once

#include <string>
#include <vector>

#include "runner/cli/chat/conversation_file.h"
#include "runner/cli/option_flags.h"

namespace CLI {
class App;
}

namespace mote::cli {

// The flags of a reply. Stays where it is once they are added.
class ReplyFlags {
 public:
  void add_to(CLI::App& app);
  GivenOptions given() const;

 private:
  OptionFlags options_;
  std::string draft_model_;
};

// Options that were given, by name and text.
class Settings {
 public:
  const GivenOptions& given() const { return given_; }

  // Names may have '-' for '_'. False: there is no such option.
  static bool has(const std::string& name);
  // Of a name that has() does not know.
  static std::string refusal(const std::string& name);
  // `text` is what the user wrote behind the name; "default" forgets what was given. Errors: InputError.
  void set(const std::string& name, const std::string& text);
  // All at once. Errors: InputError, and nothing has changed.
  void assign(const GivenOptions& options);

  // Where a seed was given, another try takes the next one.
  void advance_seed(uint64_t count);

  // Of a reply. Errors: InputError.
  Options options() const;
  std::string draft_model() const;  // a path; "": none

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
