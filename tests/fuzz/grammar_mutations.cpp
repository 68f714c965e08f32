// Compiles damaged grammars in every syntax and follows random texts of them: masks must be what trying each token
// gives. Sanitizers and crashes are failures too.
//
//   grammar_mutations [--iterations N | --seconds T] [--seed S] [--first I]
//   grammar_mutations --write-seeds FOLDER
//
// The seeds are those of run_grammar.h and tests/fuzz/corpus/grammar.
// --first I --iterations 1 repeats mutation I alone.
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "tests/fuzz/corpus.h"
#include "tests/fuzz/run_grammar.h"

namespace mote::test {
namespace {

using Random = std::mt19937_64;
using Clock = std::chrono::steady_clock;

constexpr size_t kHeaderBytes = 2;

size_t below(Random& random, size_t count) { return static_cast<size_t>(random() % count); }

void change(std::string& input, Random& random, const std::vector<std::string>& seeds) {
  const size_t at = kHeaderBytes + below(random, input.size() - kHeaderBytes + 1);
  const size_t length = std::min(input.size() - at, below(random, 12) + 1);
  const std::string& piece = grammar_pieces()[below(random, grammar_pieces().size())];
  switch (below(random, 7)) {
    case 0:
    case 1: input.insert(at, piece); break;
    case 2: input.erase(at, length); break;
    case 3: input.replace(at, length, piece); break;
    case 4: {
      const std::string& other = seeds[below(random, seeds.size())];
      input.insert(at,
                   other.substr(kHeaderBytes + below(random, other.size() - kHeaderBytes + 1), below(random, 40) + 1));
      break;
    }
    case 5: {  // a part many times over
      const std::string part = input.substr(at, length);
      const size_t count = below(random, size_t{1} << below(random, 11));
      for (size_t i = 0; i < count; ++i) input.insert(at, part);
      break;
    }
    default:
      if (at < input.size()) input[at] = static_cast<char>(below(random, 256));
  }
}

std::string mutation(uint64_t seed, uint64_t index, const std::vector<std::string>& seeds) {
  Random random(seed * 0x9E3779B97F4A7C15u + index);
  std::string input = seeds[below(random, seeds.size())];
  input[1] = static_cast<char>(below(random, 256));
  for (size_t count = below(random, 5); count > 0; --count) change(input, random, seeds);
  return input;
}

struct Options {
  uint64_t iterations = 2000;
  double seconds = 0;  // more than 0: in place of `iterations`
  uint64_t seed = 1;
  uint64_t first = 0;
  std::string seed_folder;
  std::vector<std::string> seeds = grammar_seeds();
};

Options parse(int argc, char** argv) {
  Options options;
  for (std::string& input : read_corpus("grammar")) {
    if (input.size() >= kHeaderBytes) options.seeds.push_back(std::move(input));
  }
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string argument = argv[i];
    const uint64_t number = std::strtoull(argv[i + 1], nullptr, 10);
    if (argument == "--iterations")
      options.iterations = number;
    else if (argument == "--seconds")
      options.seconds = static_cast<double>(number);
    else if (argument == "--seed")
      options.seed = number;
    else if (argument == "--first")
      options.first = number;
    else if (argument == "--write-seeds")
      options.seed_folder = argv[i + 1];
  }
  return options;
}

bool check(const std::string& name, const std::string& input, bool must_compile) {
  const Status status = run_grammar(input);
  const bool is_sound = must_compile ? status.ok() : status.code() != Code::kInternal;
  if (!is_sound)
    std::fprintf(stderr, "%s: %s\n%s\n", name.c_str(), status.message().c_str(), input.c_str() + kHeaderBytes);
  return is_sound;
}

int run(const Options& options) {
  for (const std::string& undamaged : grammar_seeds()) {
    if (!check("a seed", undamaged, true)) return 1;
  }
  const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
  uint64_t done = 0;
  double slowest = 0.0;
  uint64_t slowest_index = 0;
  for (; options.seconds > 0 ? Clock::now() < end : done < options.iterations; ++done) {
    const uint64_t i = options.first + done;
    const auto start = Clock::now();
    if (!check("mutation " + std::to_string(i), mutation(options.seed, i, options.seeds), false)) return 1;
    const double taken = std::chrono::duration<double>(Clock::now() - start).count();
    if (taken > slowest) slowest_index = i;
    slowest = std::max(slowest, taken);
  }
  std::printf("%" PRIu64 " grammars, the slowest, %" PRIu64 ", in %.2f s\n", done, slowest_index, slowest);
  return 0;
}

}  // namespace
}  // namespace mote::test

int main(int argc, char** argv) {
  const auto options = mote::test::parse(argc, argv);
  if (options.seed_folder.empty()) return mote::test::run(options);
  mote::test::write_seeds(options.seed_folder, "grammar", options.seeds);
  return 0;
}
