// Sessions in several threads.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "runner/generation/generation.h"
#include "tests/runner/session/sharing_sessions.h"

namespace mote::test {
namespace {

class SessionsInThreads : public SharingSessions {};

// A session that does random things, and what it has after each of them.
class RandomLife {
 public:
  RandomLife(std::unique_ptr<Session> session, uint32_t seed, std::string path)
      : session_(std::move(session)), random_(seed), path_(std::move(path)) {}
  ~RandomLife() { std::filesystem::remove(path_); }

  void step() {
    if (session_->position() > 300) { EXPECT_TRUE(session_->rewind(10).ok()); }
    const Ids ids = some_ids(1 + random_() % 60, static_cast<int32_t>(random_() % 3));
    switch (random_() % 7) {
      case 0: EXPECT_TRUE(session_->append(ids).ok()); break;
      case 1: EXPECT_TRUE(session_->set_tokens(ids).ok()); break;
      case 2: EXPECT_TRUE(session_->rewind(session_->position() / 2).ok()); break;
      case 3: generate(ids); break;
      case 4: fork(); break;
      case 5: save_and_restore(ids); break;
      default: session_->reset();  // what comes next looks at the prefix cache
    }
    record();
  }
  const std::vector<Ids>& tokens() const { return tokens_; }
  const std::vector<Logits>& logits() const { return logits_; }
  Session& session() { return *session_; }

 private:
  void generate(const Ids& prompt) {
    GenerationOptions options{.max_new_tokens = 1 + static_cast<int64_t>(random_() % 8), .ignore_eos = true};
    options.sampling.do_sample = random_() % 2 == 0;
    options.sampling.seed = random_();
    if (!options.sampling.do_sample) options.speculation.speculative = SpeculationMode::kLookup;
    auto generation = Generation::begin(*session_, prompt, options);
    ASSERT_TRUE(generation.ok()) << generation.status().message();
    while (!(*generation)->finish_reason().has_value()) ASSERT_TRUE((*generation)->next().ok());
  }
  void fork() {
    auto forked = session_->fork();
    ASSERT_TRUE(forked.ok());
    session_ = *std::move(forked);
  }
  void save_and_restore(const Ids& between) {
    EXPECT_TRUE(session_->save(path_).ok());
    EXPECT_TRUE(session_->set_tokens(between).ok());
    EXPECT_TRUE(session_->restore(path_).ok());
  }
  void record() {
    tokens_.emplace_back(session_->tokens().begin(), session_->tokens().end());
    logits_.push_back(session_->position() == 0 ? Logits() : copy(session_->logits()));
  }

  std::unique_ptr<Session> session_;
  std::mt19937 random_;
  std::string path_;
  std::vector<Ids> tokens_;
  std::vector<Logits> logits_;
};

// Eight sessions over one model and one prefix cache do random things in four threads: each has what it has when they
// do so one after the other.
TEST_P(SessionsInThreads, threads_do_not_see_each_other) {
  constexpr size_t kSessions = 8, kThreads = 4, kRounds = 24;
  const auto lives = [&] {
    const auto cache = std::make_shared<PrefixCache>(uint64_t{1} << 20);
    std::vector<std::unique_ptr<RandomLife>> result;
    for (uint32_t i = 0; i < kSessions; ++i) {
      const SessionOptions options{
          .context_length = 400, .kv_dtype = static_cast<KvType>(i % 4), .prefix_cache = cache};
      result.push_back(std::make_unique<RandomLife>(open(options), i, saved_path() + std::to_string(i)));
    }
    return result;
  };
  const auto alone = lives();
  for (const auto& life : alone) {
    for (size_t round = 0; round < kRounds; ++round) life->step();
  }
  const auto together = lives();
  std::vector<std::thread> threads;
  for (size_t first = 0; first < kThreads; ++first) {
    threads.emplace_back([&, first] {
      for (size_t round = 0; round < kRounds; ++round) {
        for (size_t i = first; i < kSessions; i += kThreads) together[i]->step();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kSessions; ++i) {
    EXPECT_EQ(together[i]->tokens(), alone[i]->tokens()) << i;
    EXPECT_EQ(together[i]->logits(), alone[i]->logits()) << i;
  }
  for (const size_t i : {1, 5}) {
    ASSERT_EQ(together[i]->session().options().kv_dtype, SessionOptions().kv_dtype);
    expect_exact(together[i]->session(), some_ids(3, 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, SessionsInThreads, testing::Values(0, 6, 300));

}  // namespace
}  // namespace mote::test
