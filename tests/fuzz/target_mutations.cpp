// Feeds damaged inputs to the fuzz targets that it is linked with: tokenizer files, compiled tokenizers, texts and ids;
// options; names, listings and answers of the store. Sanitizers and aborts are the failures.
//
//   tokenizer_mutations, options_mutations, store_mutations [--seconds N | --iterations N] [--seed S] [--keep]
//   [--write-seeds FOLDER] [target ...]
//
// Without targets all of them run, N seconds or inputs each, after all of their corpus. --keep writes every input to
// fuzz_TARGET.bin before it is tried. --write-seeds runs nothing.
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/corpus.h"
#include "tests/fuzz/targets.h"

namespace mote::test {
namespace {

using Random = std::mt19937_64;
using Clock = std::chrono::steady_clock;

struct Options {
  double seconds = 2;
  uint64_t iterations = 0;  // 0: as many as fit into `seconds`
  uint64_t seed = 1;
  bool keep = false;
  std::string seed_folder;
  std::vector<std::string> targets;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--seconds" && i + 1 < argc)
      options.seconds = std::atof(argv[++i]);
    else if (argument == "--iterations" && i + 1 < argc)
      options.iterations = std::strtoull(argv[++i], nullptr, 10);
    else if (argument == "--seed" && i + 1 < argc)
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    else if (argument == "--keep")
      options.keep = true;
    else if (argument == "--write-seeds" && i + 1 < argc)
      options.seed_folder = argv[++i];
    else
      options.targets.push_back(argument);
  }
  return options;
}

size_t below(Random& random, size_t count) { return static_cast<size_t>(random() % count); }

constexpr const char* kTokens[] = {
    "null", "true",         "-1",     "0",   "4194304", "1e99", "\"\"", "[]", "{}", "\"type\"", "\xE2\x96\x81",
    "\xFF", "\xED\xA0\x80", "<0x41>", "(?=", "\\p{L}",  "[",    "]",    "{",  "}",  ",",        " ",
    "a",    "<eos>"};

void mutate_once(std::string& input, const std::vector<std::string>& seeds, Random& random) {
  const size_t at = input.empty() ? 0 : below(random, input.size());
  const size_t length = 1 + below(random, 8);
  switch (below(random, 7)) {
    case 0:
      if (!input.empty()) input[at] = static_cast<char>(input[at] ^ (1 << below(random, 8)));
      return;
    case 1:
      if (!input.empty()) input[at] = static_cast<char>(random());
      return;
    case 2: input.erase(at, length); return;
    case 3: input.insert(at, kTokens[below(random, std::size(kTokens))]); return;
    case 4: input.insert(at, input.substr(below(random, input.size() + 1), 4 * length)); return;
    case 5: {
      const std::string& other = seeds[below(random, seeds.size())];
      if (!other.empty())
        input.replace(at, std::min(length, input.size() - at), other.substr(below(random, other.size()), 8 * length));
      return;
    }
    default: {
      const uint32_t edges[] = {0, 1, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
      const uint32_t value = edges[below(random, std::size(edges))];
      if (input.size() >= at / 4 * 4 + 4) std::memcpy(input.data() + at / 4 * 4, &value, 4);
    }
  }
}

void run(const Target& target, const Options& options) {
  std::vector<std::string> seeds = target.seeds();
  for (std::string& input : read_corpus(target.name)) seeds.push_back(std::move(input));
  if (!options.seed_folder.empty()) return write_seeds(options.seed_folder, target.name, seeds);
  const auto feed = [&](const std::string& input) {
    if (options.keep) std::ofstream("fuzz_" + std::string(target.name) + ".bin", std::ios::binary) << input;
    target.run({reinterpret_cast<const std::byte*>(input.data()), input.size()});
  };
  for (const std::string& seed : seeds) feed(seed);
  Random random(options.seed);
  uint64_t executions = seeds.size();
  const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
  while (options.iterations > 0 ? executions < options.iterations : Clock::now() < end) {
    std::string input = seeds[below(random, seeds.size())];
    for (size_t i = 0, count = 1 + below(random, 4); i < count; ++i) mutate_once(input, seeds, random);
    feed(input);
    ++executions;
  }
  std::printf("%s: %" PRIu64 " executions, no finding\n", target.name, executions);
  std::fflush(stdout);
}

}  // namespace
}  // namespace mote::test

int main(int argc, char** argv) {
  const auto options = mote::test::parse(argc, argv);
  for (const mote::test::Target& target : mote::test::fuzz_targets()) {
    const auto& names = options.targets;
    if (names.empty() || std::find(names.begin(), names.end(), target.name) != names.end())
      mote::test::run(target, options);
  }
  return 0;
}
