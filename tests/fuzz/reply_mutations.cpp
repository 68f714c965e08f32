// Splits damaged replies in every format, in one piece and in others: the message must be the same. Sanitizers and
// crashes are failures too.
//
//   reply_mutations [--iterations N | --seconds T] [--seed S] [--first I]
//   reply_mutations --write-seeds FOLDER
//
// The seeds are those of run_reply.h and tests/fuzz/corpus/reply.
// --first I --iterations 1 repeats mutation I alone.
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "tests/fuzz/corpus.h"
#include "tests/fuzz/run_reply.h"

namespace mote::test {
namespace {

using Random = std::mt19937_64;
using Clock = std::chrono::steady_clock;

constexpr size_t kHeaderBytes = 3;

size_t below(Random& random, size_t count) { return static_cast<size_t>(random() % count); }

// The first bytes choose the format and the pieces; what follows is the reply.
void change(std::string& input, Random& random, const std::vector<std::string>& seeds) {
  const size_t at = kHeaderBytes + below(random, input.size() - kHeaderBytes + 1);
  const size_t length = std::min(input.size() - at, below(random, 16) + 1);
  const std::string& piece = reply_pieces()[below(random, reply_pieces().size())];
  switch (below(random, 6)) {
    case 0:
    case 1: input.insert(at, piece); break;
    case 2: input.erase(at, length); break;
    case 3: input.replace(at, length, piece); break;
    case 4: {
      const std::string& other = seeds[below(random, seeds.size())];
      input.insert(at,
                   other.substr(kHeaderBytes + below(random, other.size() - kHeaderBytes + 1), below(random, 60) + 1));
      break;
    }
    default:
      if (at < input.size()) input[at] = static_cast<char>(below(random, 256));
  }
}

std::string mutation(uint64_t seed, uint64_t index, const std::vector<std::string>& seeds) {
  Random random(seed * 0x9E3779B97F4A7C15u + index);
  std::string input = seeds[below(random, seeds.size())];
  input[1] = static_cast<char>(below(random, 4));
  input[2] = static_cast<char>(below(random, 256));
  if (below(random, 8) == 0) {  // marks alone
    input.resize(kHeaderBytes);
    for (size_t count = below(random, 30); count > 0; --count)
      input += reply_pieces()[below(random, reply_pieces().size())];
  }
  for (size_t count = below(random, 6); count > 0; --count) change(input, random, seeds);
  return input;
}

struct Options {
  uint64_t iterations = 20000;
  double seconds = 0;  // more than 0: in place of `iterations`
  uint64_t seed = 1;
  uint64_t first = 0;
  std::string seed_folder;
  std::vector<std::string> seeds = reply_seeds();
};

Options parse(int argc, char** argv) {
  Options options;
  for (std::string& input : read_corpus("reply")) {
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

bool check(const std::string& name, const std::string& input) {
  const Status status = run_reply(input);
  if (!status.ok())
    std::fprintf(stderr, "%s: %s\n%s\n", name.c_str(), status.message().c_str(), input.c_str() + kHeaderBytes);
  return status.ok();
}

int run(const Options& options) {
  for (const std::string& undamaged : options.seeds) {
    if (!check("a seed", undamaged)) return 1;
  }
  const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
  uint64_t done = 0;
  for (; options.seconds > 0 ? Clock::now() < end : done < options.iterations; ++done) {
    const uint64_t i = options.first + done;
    if (!check("mutation " + std::to_string(i), mutation(options.seed, i, options.seeds))) return 1;
  }
  std::printf("%" PRIu64 " replies\n", done);
  return 0;
}

}  // namespace
}  // namespace mote::test

int main(int argc, char** argv) {
  const auto options = mote::test::parse(argc, argv);
  if (options.seed_folder.empty()) return mote::test::run(options);
  mote::test::write_seeds(options.seed_folder, "reply", options.seeds);
  return 0;
}
