// Runs damaged copies of .mote files: each must be refused with a message or run. Sanitizers and crashes are the
// failures.
//
//   program_mutations [--iterations N] [--seed S] [--first I] [--verbose] [file.mote ...]
//
// Without files a built-in model is damaged; MOTE_FUZZ_FILES (paths separated by ':') adds files. --first I
// --iterations 1 repeats mutation I alone.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/code_name.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/run_program.h"
#include "tests/runner/program/tiny_model.h"

namespace mote::test {
namespace {

struct Options {
  uint64_t iterations = 2000;
  uint64_t seed = 1;
  uint64_t first = 0;
  bool verbose = false;
  std::vector<std::string> files;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (argument == "--iterations")
      options.iterations = number();
    else if (argument == "--seed")
      options.seed = number();
    else if (argument == "--first")
      options.first = number();
    else if (argument == "--verbose")
      options.verbose = true;
    else
      options.files.push_back(argument);
  }
  std::string listed = std::getenv("MOTE_FUZZ_FILES") != nullptr ? std::getenv("MOTE_FUZZ_FILES") : "";
  while (!listed.empty()) {
    const size_t end = std::min(listed.find(':'), listed.size());
    if (end > 0) options.files.push_back(listed.substr(0, end));
    listed.erase(0, end + 1);
  }
  return options;
}

Bytes read(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(data, data + text.size());
}

// Damages `file` and reports; false if the file itself does not run.
bool run_file(const std::string& name, const Bytes& file, const Options& options) {
  const std::optional<Fields> fields = Fields::of(file);
  if (const Status status = run_program(file); !status.ok() || !fields) {
    std::fprintf(stderr, "%s: does not run undamaged: %s\n", name.c_str(), status.message().c_str());
    return false;
  }
  std::map<std::string, uint64_t> outcomes;
  for (uint64_t i = options.first; i < options.first + options.iterations; ++i) {
    if (options.verbose) std::fprintf(stderr, "%s: mutation %" PRIu64 "\n", name.c_str(), i);
    Random random(options.seed * 0x9E3779B97F4A7C15u + i);
    const Status status = run_program(i % 2 == 0 ? mutate_bytes(file, random) : fields->mutate(random));
    if (options.verbose) std::fprintf(stderr, "  %s\n", status.ok() ? "ran" : status.message().c_str());
    ++outcomes[status.ok() ? "ran" : code_name(status.code())];
    if (status.ok() || !status.message().empty()) continue;
    std::fprintf(stderr, "%s: mutation %" PRIu64 " was refused without a message\n", name.c_str(), i);
    return false;
  }
  std::printf("%s:", name.c_str());
  for (const auto& [outcome, count] : outcomes) std::printf(" %s %" PRIu64 ",", outcome.c_str(), count);
  std::printf(" of %" PRIu64 "\n", options.iterations);
  return true;
}

int run(const Options& options) {
  bool passed = true;
  if (options.files.empty()) {
    passed = run_file("built-in model", tiny_model().build(), options);
    passed = run_file("built-in model with a sliding window", tiny_model({.window = 8}).build(), options) && passed;
    passed = run_file("built-in model with delegates", tiny_model({.delegates = true}).build(), options) && passed;
  }
  for (const std::string& path : options.files) passed = run_file(path, read(path), options) && passed;
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace mote::test

int main(int argc, char** argv) { return mote::test::run(mote::test::parse(argc, argv)); }
