#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "runner/cli/bench_batch.h"
#include "runner/cli/interrupts.h"
#include "runner/cli/option_flags.h"
#include "runner/cli/parsing.h"
#include "runner/cli/profile_report.h"
#include "runner/cli/target_choice.h"
#include "runner/cli/terminal.h"
#include "runner/cli/verbs.h"

namespace mote::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchFlags {
  std::string file;
  std::vector<int> prompt_tokens;
  std::vector<int> generate_tokens = {64};
  std::vector<int> depths = {0};
  std::vector<int> batch;  // numbers of sequences
  int repetitions = 5;
  bool json = false;
  bool limits = false;
  bool profile = false;
  OptionFlags options;
};

struct Case {
  bool is_prefill = true;
  int tokens = 0;
  int depth = 0;      // tokens in the context before
  int sequences = 0;  // that decode together; 0: one alone
  std::vector<double> seconds{};

  int first() const { return is_prefill ? depth : std::max(depth, 1); }  // decode goes on from some token
  int positions(int prefill_chunk) const {
    return sequences == 0 ? first() + tokens : positions_of({sequences, tokens, depth}, prefill_chunk);
  }
  double rate(double elapsed) const { return tokens * std::max(sequences, 1) / elapsed; }
  std::string name() const {
    return is_prefill ? "prefill" : sequences == 0 ? "decode" : "decode x" + std::to_string(sequences);
  }
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Ids that differ from each other and from run to run do not: x -> a x + c in the vocabulary.
std::vector<int32_t> made_up_ids(int count, int32_t vocab_size) {
  std::vector<int32_t> ids;
  uint64_t x = 12345;
  for (int i = 0; i < count; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    ids.push_back(static_cast<int32_t>((x >> 33) % static_cast<uint64_t>(vocab_size)));
  }
  return ids;
}

void prefill(const Session& session, const std::vector<int32_t>& ids) {
  check([&](mote_error* error) { return mote_session_prefill(session.get(), ids.data(), ids.size(), nullptr, error); });
}

// Makes the context that the measurement starts from. Returns the ids to measure.
std::vector<int32_t> fill(const Case& test, const Session& session, int32_t vocab_size) {
  check([&](mote_error* error) { return mote_session_reset(session.get(), error); });
  const std::vector<int32_t> ids = made_up_ids(test.first() + test.tokens, vocab_size);
  if (test.first() > 0) prefill(session, {ids.begin(), ids.begin() + test.first()});
  return {ids.begin() + test.first(), ids.end()};
}

double time_filled(const Case& test, const Session& session, const std::vector<int32_t>& ids) {
  const auto start = Clock::now();
  if (test.is_prefill) {
    prefill(session, ids);
  } else {
    for (const int32_t id : ids)
      check([&](mote_error* error) { return mote_session_decode(session.get(), id, nullptr, error); });
  }
  return seconds_since(start);
}

double time_once(const Case& test, const Options& options, const Model& model, const Session& session) {
  if (test.sequences > 0) return time_batch({test.sequences, test.tokens, test.depth}, model, options);
  return time_filled(test, session, fill(test, session, info_of(model).vocab_size));
}

void measure(std::vector<Case>& cases, int repetitions, const Options& options, const Model& model,
             const Session& session) {
  const Interrupts interrupts(Interrupts::Second::kEndsTheProcess);
  const CancelOnInterrupt cancel(session.get());
  const bool show_progress = has_colour(stderr);
  for (Case& test : cases) {
    (void)time_once(test, options, model, session);  // warms caches and clocks
    for (int i = 0; i < repetitions; ++i) {
      if (show_progress) std::fprintf(stderr, "\r%s %d: %d/%d ", test.name().c_str(), test.tokens, i + 1, repetitions);
      test.seconds.push_back(time_once(test, options, model, session));
    }
    std::sort(test.seconds.begin(), test.seconds.end());
  }
  if (show_progress) std::fprintf(stderr, "\r\x1b[K");
}

double median(const std::vector<double>& sorted) {
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0;
}

std::vector<Case> cases_of(const BenchFlags& flags) {
  std::vector<Case> cases;
  for (const int depth : flags.depths) {
    const bool has_default = flags.prompt_tokens.empty() && flags.batch.empty();
    for (const int tokens : has_default ? std::vector<int>{128, 512} : flags.prompt_tokens)
      cases.push_back({true, tokens, depth});
    for (const int tokens : flags.generate_tokens) {
      if (flags.batch.empty()) cases.push_back({false, tokens, depth});
      for (const int sequences : flags.batch) cases.push_back({false, tokens, depth, sequences});
    }
  }
  if (cases.empty()) throw InputError("nothing to measure: give --prompt-tokens or --generate-tokens");
  return cases;
}

// Room for the longest case, unless the user chose it.
void choose_context(const Options& options, const Model& model, const std::vector<Case>& cases) {
  const Json values = values_of(options, model);
  const auto chosen = values["context_length"].get<int32_t>();
  const int32_t room = chosen == 0 ? info_of(model).max_position_embeddings : chosen;
  int32_t needed = 1;
  for (const Case& test : cases) needed = std::max(needed, test.positions(values["prefill_chunk"].get<int>()));
  if (needed > room) {
    throw InputError("a measurement needs " + std::to_string(needed) + " positions, the context has " +
                     std::to_string(room) + ": give smaller --prompt-tokens, --generate-tokens or --depth");
  }
  if (chosen == 0) set_option(options, "context_length", std::to_string(needed));
}

// By as many threads as the options say.
mote_limits measure_limits(const GivenOptions& given) {
  const auto threads = given.find("threads");
  auto limits = sized<mote_limits>();
  check([&](mote_error* error) {
    return mote_measure_limits(threads == given.end() ? 0 : std::atoi(threads->second.back().c_str()), &limits, error);
  });
  return limits;
}

Json to_json(const mote_limits& limits) {
  return {{"read_gb_s", limits.read_gb_s},
          {"int8_gmac_s", limits.int8_gmac_s},
          {"int8_wide_gmac_s", limits.int8_wide_gmac_s}};
}

int bench_limits(const BenchFlags& flags) {
  if (!flags.file.empty()) throw InputError("--limits measures the machine and takes no file");
  const mote_limits limits = measure_limits(flags.options.given());
  if (flags.json)
    std::printf("%s\n", to_json(limits).dump().c_str());
  else
    std::printf(
        "memory read               %s GB/s\n"
        "int8 x codes of 4 bits    %s GMAC/s\n"
        "int8 x codes of 8 bits    %s GMAC/s\n",
        number_text(limits.read_gb_s).c_str(), number_text(limits.int8_gmac_s).c_str(),
        number_text(limits.int8_wide_gmac_s).c_str());
  return 0;
}

// One more run of each case, measured instruction by instruction.
Json profile_cases(const std::vector<Case>& cases, const Session& session, int32_t vocab_size,
                   const mote_limits& limits) {
  Json tests = Json::array();
  for (const Case& test : cases) {
    if (test.sequences > 0) continue;
    const std::vector<int32_t> ids = fill(test, session, vocab_size);
    check([&](mote_error* error) { return mote_session_start_profile(session.get(), error); });
    const double seconds = time_filled(test, session, ids);
    const Json trace = Json::parse(take_string(
        [&](char** text, mote_error* error) { return mote_session_stop_profile(session.get(), text, error); }));
    Json summary = summarize(trace, test.is_prefill ? "prefill" : "decode", limits);
    summary["tokens"] = test.tokens;
    summary["depth"] = test.depth;
    summary["overhead"] = seconds / median(test.seconds) - 1;
    tests.push_back(summary);
  }
  return {{"limits", to_json(limits)}, {"tests", tests}};
}

void print_profile(const Json& profile) {
  for (const Json& test : profile["tests"]) {
    const double calls = test["calls"].get<double>(), submissions = test["submissions"].get<double>();
    std::string heading = test["method"].get<std::string>() + " " + test["tokens"].dump() + ": " +
                          test["calls"].dump() + " calls, each " + duration_text(test["seconds"].get<double>() / calls);
    if (submissions > 0) {
      heading += " in " + number_text(submissions / calls) + " submissions of " +
                 number_text(test["dispatches"].get<double>() / calls) + " dispatches";
    }
    std::printf("\n%s\n", bold(heading, stdout).c_str());
    print_summary(test);
  }
  std::printf("limits: %s GB/s read, %s GOP/s int8\n", number_text(profile["limits"]["read_gb_s"]).c_str(),
              number_text(2 * profile["limits"]["int8_gmac_s"].get<double>()).c_str());
}

Json to_json(const std::vector<Case>& cases) {
  Json results = Json::array();
  for (const Case& test : cases) {
    results.push_back({{"test", test.is_prefill       ? "prefill"
                                : test.sequences == 0 ? "decode"
                                                      : "batch"},
                       {"tokens", test.tokens},
                       {"depth", test.depth},
                       {"sequences", std::max(test.sequences, 1)},
                       {"repetitions", test.seconds.size()},
                       {"median_tokens_per_second", test.rate(median(test.seconds))},
                       {"min_tokens_per_second", test.rate(test.seconds.back())},
                       {"max_tokens_per_second", test.rate(test.seconds.front())},
                       {"median_seconds", median(test.seconds)}});
  }
  return results;
}

void print_table(const Json& report, const Json& about) {
  Table table({"test", "tokens", "depth", "tok/s", "min", "max", "time"});
  for (const Json& result : report["results"]) {
    const bool is_batch = result["test"] == "batch";
    const std::string name = is_batch ? "decode x" + result["sequences"].dump() : result["test"].get<std::string>();
    table.add({name, result["tokens"].dump(), result["depth"].dump(), number_text(result["median_tokens_per_second"]),
               number_text(result["min_tokens_per_second"]), number_text(result["max_tokens_per_second"]),
               duration_text(result["median_seconds"])});
  }
  table.print(stdout);
  std::printf("\nload %s | file %s | peak memory: private %s, file-backed %s | %d threads, kv %s\n",
              duration_text(report["load_seconds"]).c_str(), bytes_text(report["file_bytes"]).c_str(),
              bytes_text(report["peak_private_bytes"]).c_str(), bytes_text(report["peak_file_backed_bytes"]).c_str(),
              report["threads"].get<int>(), report["kv_dtype"].get<std::string>().c_str());
  if (const std::string choice = choice_text(about); !choice.empty()) std::printf("%s\n", choice.c_str());
  if (report.contains("profile")) print_profile(report["profile"]);
}

// The CPU and what was chosen for it, without the kernels that were not.
Json describe_machine() {
  Json about =
      Json::parse(take_string([](char** text, mote_error* error) { return mote_describe_kernels(text, error); }));
  about.erase("kernels");
  return about;
}

int bench(const BenchFlags& flags) {
  if (flags.limits) return bench_limits(flags);
  if (flags.file.empty()) throw InputError("no .mote file was given: mote-runner bench model.mote");
  std::vector<Case> cases = cases_of(flags);
  const auto start = Clock::now();
  const Options options = flags.options.options();
  const Model model = open_model(flags.file, options);
  choose_context(options, model, cases);
  const Session session = open_session(model, options);
  const double load_seconds = seconds_since(start);
  const mote_model_info info = info_of(model);
  measure(cases, flags.repetitions, options, model, session);
  require_unmoved(session);
  auto session_info = sized<mote_session_info>();
  check([&](mote_error* error) { return mote_session_get_info(session.get(), &session_info, error); });
  auto memory = sized<mote_memory>();
  check([&](mote_error* error) { return mote_get_memory(&memory, error); });
  const Json about = describe(model);
  Json report = {{"file", flags.file},
                 {"target", about["target"]},
                 {"file_bytes", info.file_bytes},
                 {"load_seconds", load_seconds},
                 {"threads", session_info.num_threads},
                 {"context_length", session_info.context_length},
                 {"kv_dtype", values_of(options, model)["kv_dtype"]},
                 {"results", to_json(cases)},
                 {"state_bytes", session_info.state_bytes},
                 {"arena_bytes", session_info.arena_bytes},
                 {"peak_rss_bytes", memory.peak_rss_bytes},
                 {"peak_private_bytes", memory.peak_private_bytes},
                 {"peak_file_backed_bytes", memory.peak_file_backed_bytes},
                 {"machine", describe_machine()}};
  if (flags.profile)
    report["profile"] = profile_cases(cases, session, info.vocab_size, measure_limits(flags.options.given()));
  if (flags.json)
    std::printf("%s\n", report.dump(2).c_str());
  else
    print_table(report, about);
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<BenchFlags>();
  CLI::App& verb = *app.add_subcommand("bench", "Measure prefill and decode speed, load time and memory");
  verb.footer(
      "The table shows the median, the slowest and the fastest run of each measurement.\n"
      "Examples:\n  mote-runner bench model.mote\n  mote-runner bench model.mote -p 128,512 -n 64 --json\n"
      "  mote-runner bench model.mote -p 256 -n 64 --profile\n  mote-runner bench model.mote -p 16 -n 16 -d 256,2048 "
      "--kv-dtype int8\n"
      "  mote-runner bench model.mote --batch 1,2,4,8 -n 64 -d 256\n  mote-runner bench --limits -t 2\n");
  verb.add_option("file", flags->file, "The .mote file");
  verb.add_option("-p,--prompt-tokens", flags->prompt_tokens,
                  "Prompt lengths to measure (default: 128,512; with --batch none)")
      ->delimiter(',')
      ->check(at_least(1));
  verb.add_option("-n,--generate-tokens", flags->generate_tokens, "Numbers of generated tokens to measure")
      ->delimiter(',')
      ->check(at_least(1))
      ->capture_default_str();
  verb.add_option("-d,--depth", flags->depths,
                  "Tokens in the context before each measurement, made anew and not measured")
      ->delimiter(',')
      ->check(at_least(0))
      ->capture_default_str();
  verb.add_option("-b,--batch", flags->batch, "Numbers of sequences that decode together; tok/s is that of all")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
  verb.add_option("-r,--repetitions", flags->repetitions, "Runs of each measurement, after one to warm up")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb.add_flag("--json", flags->json, "Print the report as JSON");
  verb.add_flag("--profile", flags->profile,
                "Then measure every instruction: tables by op and by layer, beside the machine's limits");
  verb.add_flag("--limits", flags->limits, "Measure only the machine: memory read bandwidth and int8 products");
  flags->options.add_to(verb, MOTE_SCOPE_SESSION | MOTE_SCOPE_MODEL, {"name", "overflow", "num_keep"});
  verb.callback([flags, &action] { action = [flags] { return bench(*flags); }; });
}

}  // namespace mote::cli
