// The command line read, and what is told of one that cannot be.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace mote::cli {

// words: the program's name first. Flags that other software has for options of Mote are taken as theirs. Returns the
// exit status if there is nothing to do: help was asked for, or an error has been told.
std::optional<int> parse(CLI::App& app, std::span<const std::string> words);

// That a flag's value is an integer of at least `least`.
CLI::Validator at_least(int64_t least);

// Tells an error on standard error. Returns the exit status of bad input.
int fail(const char* message);

}  // namespace mote::cli
