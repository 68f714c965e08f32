// What `run` is asked.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace mote::cli {

struct PromptFlags {
  std::vector<std::string> words;    // behind the model; "-": standard input
  std::vector<std::string> prompts;  // -p
  std::vector<std::string> files;    // --file; "-": standard input
};

// One text a prompt: those behind the model, then those of -p, each with the contents of the files behind it, a blank
// line between them. Without a prompt and a file, standard input; what it says if that is a terminal is told there.
// Errors: InputError naming the file, or that standard input is wanted twice.
std::vector<std::string> read_prompts(const PromptFlags& flags);

}  // namespace mote::cli
