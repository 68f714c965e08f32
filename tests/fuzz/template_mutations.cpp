// Parses and renders damaged copies of chat templates: each must be refused with a message or render soundly.
// Sanitizers and crashes are the failures.
//
//   template_mutations [--seconds N | --iterations N] [--seed S] [--first I] [--write-seeds FOLDER] [file.jinja ...]
//
// Files are added to the built-in seeds and the corpus; MOTE_FUZZ_TEMPLATES (paths separated by ':') adds more. --first
// I
// --iterations 1 repeats mutation I alone. --write-seeds runs nothing.
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/code_name.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/run_template.h"

namespace mote::test {
namespace {

using Random = std::mt19937_64;
using Clock = std::chrono::steady_clock;

constexpr const char* kPieces[] = {"{{",
                                   "}}",
                                   "{%",
                                   "%}",
                                   "{#",
                                   "#}",
                                   "{%-",
                                   "-%}",
                                   "{{-",
                                   "-}}",
                                   "(",
                                   ")",
                                   "[",
                                   "]",
                                   "{",
                                   "}",
                                   "|",
                                   ".",
                                   ",",
                                   ":",
                                   "=",
                                   "==",
                                   "~",
                                   "**",
                                   "//",
                                   "%",
                                   " if ",
                                   " else ",
                                   " for ",
                                   " in ",
                                   " is ",
                                   " not ",
                                   " and ",
                                   " or ",
                                   "loop",
                                   "loop.last",
                                   "loop.nextitem",
                                   "loop.length",
                                   "messages",
                                   "tools",
                                   "namespace()",
                                   "range(9999)",
                                   "caller()",
                                   "varargs",
                                   "kwargs",
                                   "{% set x = ",
                                   "{% for x in ",
                                   "{% endfor %}",
                                   "{% if ",
                                   "{% endif %}",
                                   "{% macro m(a) %}",
                                   "{% endmacro %}",
                                   "{{ m(m) }}",
                                   "{% call m(1) %}",
                                   "{% endcall %}",
                                   "{% break %}",
                                   "{% continue %}",
                                   "{% raw %}",
                                   "{% endraw %}",
                                   "{% generation %}",
                                   "{% endgeneration %}",
                                   "{% set x %}",
                                   "{% endset %}",
                                   " recursive ",
                                   "| tojson",
                                   "| tojson(indent=9)",
                                   "| map('upper')",
                                   "| list",
                                   "| join",
                                   "| sort",
                                   "| groupby('role')",
                                   "| default(x)",
                                   "| replace('', 'aa')",
                                   "| indent(99)",
                                   "| center(99999)",
                                   "| batch(3)",
                                   "| slice(99)",
                                   "| unique",
                                   "| int",
                                   "| round(9)",
                                   "| urlencode",
                                   "| safe",
                                   "| string",
                                   ".split('')",
                                   ".split()",
                                   ".format(x)",
                                   ".items()",
                                   ".get('role')",
                                   ".pop()",
                                   ".join(xs)",
                                   "[::-1]",
                                   "[1:-1]",
                                   "[-9:9:-2]",
                                   "[0]",
                                   "'%s'",
                                   "'{:>99}'",
                                   "'\\u00e9'",
                                   "\"x\"",
                                   "9223372036854775807",
                                   "-1",
                                   "0",
                                   "1e308",
                                   "0.1",
                                   "none",
                                   "true",
                                   "x",
                                   "s",
                                   "n",
                                   "xs",
                                   "* 99999",
                                   "+ x",
                                   "~ x",
                                   "\n",
                                   "\xC3\xA9",
                                   "\xF0\x9F\x98\x80",
                                   "<|im_end|>",
                                   "_",
                                   "__class__",
                                   "\\"};

// What stands between tags; X and Y become values.
constexpr const char* kWhole[] = {"{{ X }}",
                                  "{{ X ~ Y }}",
                                  "{{ X + Y }}",
                                  "{{ X * Y }}",
                                  "{{ X % Y }}",
                                  "{{ X[Y] }}",
                                  "{{ X[Y:Y:-1] }}",
                                  "{{ X == Y }}",
                                  "{{ X in Y }}",
                                  "{{ X < Y }}",
                                  "{{ X | tojson(indent=Y) }}",
                                  "{{ X | string | replace(Y, Y) }}",
                                  "{{ X | join(Y) }}",
                                  "{{ X | sort | list }}",
                                  "{{ X | batch(Y) | list }}",
                                  "{{ X | groupby(Y) }}",
                                  "{{ X | map(attribute=Y) | list }}",
                                  "{{ X | string | indent(Y) }}",
                                  "{{ X | unique | list }}",
                                  "{{ X | string | truncate(Y) }}",
                                  "{{ X | round(Y) }}",
                                  "{{ X | int(Y) }}",
                                  "{{ X | center(Y) }}",
                                  "{{ X | dictsort }}",
                                  "{{ X | slice(Y) | list }}",
                                  "{{ (X ~ '').split(Y) }}",
                                  "{{ (X ~ '').strip(Y) }}",
                                  "{{ (X ~ '').format(Y) }}",
                                  "{{ (X ~ '') % Y }}",
                                  "{{ (X ~ '').find(Y) }}",
                                  "{{ (X ~ '').replace(Y, X ~ '') }}",
                                  "{{ (X ~ '').title() | urlencode }}",
                                  "{{ X | reverse | list }}",
                                  "{{ X if Y else X }}",
                                  "{{ -X }}",
                                  "{% set v = X %}",
                                  "{% for a in X %}{{ a }}{{ loop.last }}{{ loop.nextitem }}{% endfor %}",
                                  "{% if X %}{{ Y }}{% endif %}",
                                  "{% set v %}{{ X }}{% endset %}",
                                  "{% filter upper %}{{ X }}{% endfilter %}",
                                  "{% macro v(a, b=X) %}{{ a }}{{ b }}{% endmacro %}{{ v(Y) }}",
                                  "{% with v = X %}{{ v }}{% endwith %}",
                                  "{% set o = namespace(p=X) %}{% set o.p = [o.p, Y] %}{{ o.p }}"};
constexpr const char* kValues[] = {"messages",
                                   "messages[0]",
                                   "messages[1].content",
                                   "tools",
                                   "s",
                                   "n",
                                   "f",
                                   "xs",
                                   "v",
                                   "nope",
                                   "none",
                                   "true",
                                   "0",
                                   "-3",
                                   "2.5",
                                   "''",
                                   "'a'",
                                   "'%s{}'",
                                   "'content'",
                                   "[1, 'a', none]",
                                   "{'k': [1]}",
                                   "(1, 2)",
                                   "range(9)",
                                   "9223372036854775807",
                                   "bos_token",
                                   "loop",
                                   "'<|x|> \u00e9'",
                                   "messages[1].content[0].text",
                                   "namespace(q=1)",
                                   "xs | map('string')",
                                   "messages[2].items()"};

size_t below(Random& random, size_t count) { return static_cast<size_t>(random() % count); }

// Puts a whole tag behind one that is there.
void insert_tag(std::string& text, Random& random) {
  const size_t tag = text.find(below(random, 2) == 0 ? "}}" : "%}", below(random, text.size() + 1));
  std::string whole;
  for (const char* c = kWhole[below(random, std::size(kWhole))]; *c != '\0'; ++c) {
    if (*c == 'X' || *c == 'Y') {
      whole += kValues[below(random, std::size(kValues))];
    } else {
      whole += *c;
    }
  }
  text.insert(tag == text.npos ? 0 : tag + 2, whole);
}

void change(std::string& text, Random& random, const std::vector<std::string>& seeds) {
  if (below(random, 4) != 0) return insert_tag(text, random);
  const size_t at = below(random, text.size() + 1);
  const size_t length = std::min(text.size() - at, below(random, 24) + 1);
  switch (below(random, 6)) {
    case 0:
    case 1: text.insert(at, kPieces[below(random, std::size(kPieces))]); break;
    case 2: text.erase(at, length); break;
    case 3: text.replace(at, length, kPieces[below(random, std::size(kPieces))]); break;
    case 4: {
      const std::string& other = seeds[below(random, seeds.size())];
      const size_t from = below(random, other.size());
      text.insert(at, other.substr(from, below(random, 60) + 1));
      break;
    }
    default:
      if (!text.empty()) text[below(random, text.size())] = static_cast<char>(below(random, 128));
  }
}

std::string read(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void add_listed(std::vector<std::string>& seeds, std::string listed) {
  while (!listed.empty()) {
    const size_t end = std::min(listed.find(':'), listed.size());
    if (end > 0) seeds.push_back(read(listed.substr(0, end)));
    listed.erase(0, end + 1);
  }
}

struct Options {
  uint64_t iterations = 20000;
  double seconds = 0;  // more than 0: in place of `iterations`
  uint64_t seed = 1;
  uint64_t first = 0;
  std::string seed_folder;
  std::vector<std::string> seeds = template_seeds();
};

Options parse(int argc, char** argv) {
  Options options;
  for (std::string& input : read_corpus("template")) options.seeds.push_back(std::move(input));
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (argument == "--iterations")
      options.iterations = number();
    else if (argument == "--seconds")
      options.seconds = static_cast<double>(number());
    else if (argument == "--seed")
      options.seed = number();
    else if (argument == "--first")
      options.first = number();
    else if (argument == "--write-seeds" && i + 1 < argc)
      options.seed_folder = argv[++i];
    else
      options.seeds.push_back(read(argument));
  }
  if (const char* listed = std::getenv("MOTE_FUZZ_TEMPLATES"); listed != nullptr) add_listed(options.seeds, listed);
  return options;
}

bool is_sound(const Status& status) { return status.ok() || status.code() == Code::kInvalidTemplate; }

int run(const Options& options) {
  const std::vector<std::string>& seeds = options.seeds;
  for (const std::string& undamaged : seeds) {
    const Status status = run_template(undamaged);
    if (is_sound(status)) continue;
    std::fprintf(stderr, "seed: %s\n%s\n", status.message().c_str(), undamaged.c_str());
    return 1;
  }
  std::map<std::string, uint64_t> outcomes;
  const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
  uint64_t done = 0;
  for (; options.seconds > 0 ? Clock::now() < end : done < options.iterations; ++done) {
    const uint64_t i = options.first + done;
    Random random(options.seed * 0x9E3779B97F4A7C15u + i);
    std::string text = seeds[below(random, seeds.size())];
    for (size_t count = below(random, 3) + 1; count > 0; --count) change(text, random, seeds);
    const Status status = run_template(text);
    ++outcomes[status.ok() ? "rendered" : code_name(status.code())];
    if (is_sound(status)) continue;
    std::fprintf(stderr, "mutation %" PRIu64 ": %s\n%s\n", i, status.message().c_str(), text.c_str());
    return 1;
  }
  for (const auto& [outcome, count] : outcomes) std::printf("%s %" PRIu64 ", ", outcome.c_str(), count);
  std::printf("of %" PRIu64 "\n", done);
  return 0;
}

}  // namespace
}  // namespace mote::test

int main(int argc, char** argv) {
  const auto options = mote::test::parse(argc, argv);
  if (options.seed_folder.empty()) return mote::test::run(options);
  mote::test::write_seeds(options.seed_folder, "template", options.seeds);
  return 0;
}
