// run_model FILE: what a model computes alone, in a batch and measured, for a test in Python. Prints lines of a name
// and numbers:
//   prefill N      the logits behind the first N of the ids that ids_of gives
//   alone I        the ids that follow prompt I greedily, each with the log-probability it had
//   together I     the same of a batch that computes all prompts
//   OP             instructions of a prefill of 7 tokens, with the bytes and multiply-accumulates of the last
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "runner/generation/batch.h"
#include "runner/generation/generation.h"

namespace mote::test {
namespace {

constexpr int64_t kContext = 64, kNewTokens = 6;
constexpr size_t kPrompts[] = {9, 1, 14};

template <typename T>
T need(Result<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.status().message().c_str());
  std::exit(1);
}

SessionOptions session_options() {
  SessionOptions options;
  options.context_length = kContext;
  options.threads = 2;
  options.kv_dtype = KvType::kFloat32;  // as PyTorch does it
  return options;
}

GenerationOptions greedy() {
  GenerationOptions options;
  options.max_new_tokens = kNewTokens;
  options.ignore_eos = true;
  options.logprobs = true;
  return options;
}

std::vector<int32_t> ids_of(const Model& model, size_t count) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back((static_cast<int32_t>(i) * 37 + 11) % model.vocab_size());
  return ids;
}

void prefill(const std::shared_ptr<const Model>& model) {
  for (const size_t count : {1, 7, 20}) {
    const auto session = need(Session::open(model, session_options()));
    std::printf("prefill %zu:", count);
    for (const float logit : need(session->prefill(ids_of(*model, count))))
      std::printf(" %.9g", static_cast<double>(logit));
    std::printf("\n");
  }
}

using Written = std::map<int64_t, std::vector<double>>;  // of each prompt: ids and log-probabilities

void add(Written& written, int64_t prompt, const Piece& piece) {
  if (piece.id >= 0) written[prompt].insert(written[prompt].end(), {double(piece.id), double(piece.logprob)});
}

void print(const char* name, const Written& written) {
  for (const auto& [prompt, numbers] : written) {
    std::printf("%s %lld:", name, static_cast<long long>(prompt));
    for (const double number : numbers) std::printf(" %.9g", number);
    std::printf("\n");
  }
}

void alone(const std::shared_ptr<const Model>& model) {
  Written written;
  for (size_t i = 0; i < std::size(kPrompts); ++i) {
    const auto session = need(Session::open(model, session_options()));
    const auto generation = need(Generation::begin(*session, ids_of(*model, kPrompts[i]), greedy()));
    for (bool ends = false; !ends;) {
      const Piece piece = need(generation->next());
      add(written, static_cast<int64_t>(i), piece);
      ends = piece.finish_reason.has_value();
    }
  }
  print("alone", written);
}

void together(const std::shared_ptr<const Model>& model) {
  BatchOptions options;
  options.session = session_options();
  const auto batch = need(Batch::open(model, options));
  for (const size_t count : kPrompts) need(batch->add(ids_of(*model, count), greedy()));
  Written written;
  while (batch->num_sequences() > 0) {
    for (const BatchPiece& piece : need(batch->step())) add(written, piece.sequence, piece.piece);
  }
  print("together", written);
}

void measured(const std::shared_ptr<const Model>& model) {
  const auto session = need(Session::open(model, session_options()));
  session->start_profile();
  need(session->prefill(ids_of(*model, 7)));
  const auto profile = session->stop_profile();
  std::map<std::string_view, std::pair<int, Cost>> ops;
  for (uint64_t i = profile->events().first(); i < profile->events().num_added(); ++i) {
    const Profile::Event& event = profile->events()[i];
    const uint32_t method = profile->calls()[event.call_index].method;
    auto& [count, cost] = ops[model->bound()->ops(method)[event.instruction]->name];
    ++count;
    cost = event.cost;
  }
  for (const auto& [name, op] : ops) {
    std::printf("%.*s: %d %lld %lld\n", static_cast<int>(name.size()), name.data(), op.first,
                static_cast<long long>(op.second.bytes), static_cast<long long>(op.second.macs));
  }
}

}  // namespace
}  // namespace mote::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: run_model FILE\n");
    return 2;
  }
  const auto model = mote::test::need(mote::Model::open(argv[1]));
  mote::test::prefill(model);
  mote::test::alone(model);
  mote::test::together(model);
  mote::test::measured(model);
}
