// What programs that inject faults do with a file.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runner/session/session.h"

namespace mote::test {

[[noreturn]] inline void fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

template <typename T> T must(Result<T> result, const std::string& place) {
  if (!result.ok()) fail(place + ": " + result.status().message());
  return *std::move(result);
}
inline void must(const Status& status, const std::string& place) {
  if (!status.ok()) fail(place + ": " + status.message());
}

inline int32_t max_of(std::span<const float> logits) {
  return static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
}

// What is done with the file, another thing for each number.
struct Scenario {
  int32_t number = 0;

  size_t prompt() const { return static_cast<size_t>(1 + number * 7 % 29); }
  int64_t chunk() const { return number % 3 == 0 ? 4 : number % 3 == 1 ? 8 : 16; }
  int generated() const { return 3 + number % 4; }
  bool goes_back() const { return number % 2 == 0; }
  bool forks() const { return number % 3 != 1; }
  bool scores() const { return number % 4 == 3; }
};

// The ids that every way to run the file must give.
inline std::vector<int32_t> generate(const std::shared_ptr<const Model>& model, const Scenario& scenario,
                                     const std::string& place, std::string* backend) {
  SessionOptions options;
  options.context_length = 64;
  options.prefill_chunk = scenario.chunk();
  options.threads = 1;
  options.kv_dtype = KvType::kFloat32;
  const auto session = must(Session::open(model, options), place + ": opening a session");
  std::vector<int32_t> prompt, text;
  for (size_t i = 0; i < scenario.prompt(); ++i)
    prompt.push_back((static_cast<int32_t>(i) * 37 + 11 + scenario.number * 101) % model->vocab_size());
  auto logits = must(session->prefill(prompt), place + ": a prompt");
  for (int i = 0; i < scenario.generated(); ++i) {
    text.push_back(max_of(logits));
    logits = must(session->decode(text.back()), place + ": a token");
  }
  if (scenario.goes_back()) {
    const auto to = static_cast<int64_t>(prompt.size());
    must(session->rewind(to), place + ": going back");
    text.push_back(max_of(must(session->decode(text[1]), place + ": a token after going back")));
  }
  if (scenario.forks()) {
    const auto fork = must(session->fork(), place + ": a fork");
    std::vector<float> rows(3 * static_cast<size_t>(model->vocab_size()));
    const std::vector<int32_t> ids(text.begin(), text.begin() + 3);
    must(fork->verify(ids, rows.data()), place + ": ids with all their logits");
    for (size_t i = 0; i < 3; ++i)
      text.push_back(max_of(std::span(rows).subspan(i * rows.size() / 3, rows.size() / 3)));
  }
  if (scenario.scores()) {
    std::vector<float> logprobs(2);
    must(session->score(std::vector<int32_t>(text.begin(), text.begin() + 3), logprobs.data()), place + ": scores");
    text.push_back(max_of(logprobs));
  }
  *backend = std::string(session->backend());
  return text;
}

}  // namespace mote::test
