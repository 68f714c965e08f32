// Random lifecycles: threads open, chat, cancel, close, fork, save and trim what they share, in any order.
#include <array>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "tests/runner/capi/fixture.h"
#include "tests/runner/chat/scripted_model.h"

namespace mote {
namespace {

constexpr uint32_t kThreads = 8, kSteps = 8;
constexpr size_t kPrompts = 4;
constexpr int kSavedFiles = 3;
constexpr std::array<const char*, kPrompts> kMessages = {
    R"({"role": "user", "content": "Hello"})", R"({"role": "user", "content": "What is a prefix cache good for?"})",
    R"({"role": "user", "content": "0"})", R"({"role": "user", "content": "Hello again"})"};

// Handles that any thread replaces, uses and closes.
template <typename Handle>
class Places {
 public:
  explicit Places(void (*close)(Handle*)) : close_(close) {}
  ~Places() {
    for (auto& handle : handles_) close_(handle);
  }
  Handle* any(std::mt19937& random) const { return handles_[random() % handles_.size()]; }
  void put(std::mt19937& random, Handle* handle) { close_(handles_[random() % handles_.size()].exchange(handle)); }

 private:
  void (*close_)(Handle*);
  std::array<std::atomic<Handle*>, 4> handles_{};
};

struct Shared {
  // Leaves no place empty.
  void open_models() {
    std::mt19937 random(1);
    for (int i = 0; i < 64; ++i) {
      mote_model* model = nullptr;
      ASSERT_EQ(mote_model_open(file.c_str(), nullptr, &model, nullptr), MOTE_OK);
      models.put(random, model);
    }
  }

  Places<mote_model> models{mote_model_close};
  Places<mote_session> sessions{mote_session_close};
  Places<mote_generation> generations{mote_generation_end};
  Places<mote_chat> chats{mote_chat_close};
  Places<mote_chat_turn> turns{mote_chat_turn_close};
  mote_prefix_cache* cache = nullptr;
  const GivenOptions drawn{R"({"temperature": 1, "seed": 7, "max_new_tokens": 8, "ignore_eos": true})"};
  const GivenOptions one_thread{R"({"threads": 1, "context_length": 160})"};
  const GivenOptions two_threads_and_cache{R"({"threads": 2, "context_length": 128})"};
  std::string file;   // of the model
  std::string saved;  // beginning of the paths of sessions
};

// How an own session, which nobody closes or cancels, comes to a text.
enum class Way { kGenerate, kFork, kRestore, kChat };

class Lifecycle {
 public:
  Lifecycle(Shared& shared, uint32_t seed)
      : shared_(shared), random_(seed), saved_(shared.saved + std::to_string(seed)) {}
  ~Lifecycle() { std::filesystem::remove(saved_); }
  Lifecycle(const Lifecycle&) = delete;
  Lifecycle& operator=(const Lifecycle&) = delete;

  // Tokens and text; none: another thread has closed the model.
  std::optional<std::string> own_text(Way way, size_t prompt) {
    mote_model* model = shared_.models.any(random_);
    mote_session* session = nullptr;
    const GivenOptions& options = random_() % 2 == 0 ? shared_.one_thread : shared_.two_threads_and_cache;
    if (mote_session_open(model, options, &session, &error_) != MOTE_OK) return std::nullopt;
    std::optional<std::string> text;
    if (way == Way::kChat) {
      text = chat(model, session, kMessages[prompt]);
    } else {
      if (way != Way::kGenerate) session = replaced(way, session, prompt);
      text = generated(session, way == Way::kGenerate ? ids_of(prompt) : std::vector<int32_t>());
    }
    mote_session_close(session);
    return text;
  }

  // Returns what came of it, which others may have made an error.
  int32_t act() {
    switch (random_() % 12) {
      case 0: return open_shared();
      case 1: return mote_model_release_pages(shared_.models.any(random_), &error_);
      case 2: return mote_prefix_cache_clear(shared_.cache, &error_);
      case 3: return use_chat();
      case 4: return use_turn();
      case 5: return use_generation();
      default: return use_session();
    }
  }
  std::mt19937& random() { return random_; }
  const char* message() const { return error_.message; }

 private:
  static std::vector<int32_t> ids_of(size_t prompt) {
    std::vector<int32_t> ids(20 + 9 * prompt);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = 3 + static_cast<int32_t>((i * 7 + prompt * 11) % 90);
    return ids;
  }

  // A fork of a session that has read the prompt, or another one that was restored from its file.
  mote_session* replaced(Way way, mote_session* session, size_t prompt) {
    const std::vector<int32_t> ids = ids_of(prompt);
    mote_session* other = nullptr;
    EXPECT_EQ(mote_session_append(session, ids.data(), ids.size(), &error_), MOTE_OK) << error_.message;
    EXPECT_EQ(mote_session_fork(session, &other, &error_), MOTE_OK) << error_.message;
    if (way == Way::kRestore) {
      EXPECT_EQ(mote_session_save(session, saved_.c_str(), &error_), MOTE_OK) << error_.message;
      EXPECT_EQ(mote_session_reset(other, &error_), MOTE_OK) << error_.message;
      EXPECT_EQ(mote_session_restore(other, saved_.c_str(), &error_), MOTE_OK) << error_.message;
    }
    mote_session_close(session);
    return other;
  }

  std::string generated(mote_session* session, const std::vector<int32_t>& ids) {
    mote_generation* generation = nullptr;
    EXPECT_EQ(mote_generation_begin(session, ids.data(), ids.size(), shared_.drawn, &generation, &error_), MOTE_OK)
        << error_.message;
    std::string text;
    auto piece = sized<mote_piece>();
    while (mote_generation_next(generation, &piece, &error_) == MOTE_OK && piece.finished == 0) {
      text += std::to_string(piece.id) + ":" + piece.text + " ";
    }
    EXPECT_EQ(piece.finish_reason, MOTE_FINISH_LENGTH) << error_.message;
    mote_generation_end(generation);
    return text;
  }

  std::optional<std::string> chat(mote_model* model, mote_session* session, const char* message) {
    mote_chat* chat = nullptr;
    mote_chat_turn* turn = nullptr;
    if (mote_chat_open(model, &chat, &error_) != MOTE_OK) return std::nullopt;
    EXPECT_EQ(mote_chat_send(chat, session, message, std::strlen(message), shared_.drawn, &turn, &error_), MOTE_OK)
        << error_.message;
    std::string text;
    auto event = sized<mote_chat_event>();
    while (mote_chat_turn_next(turn, &event, &error_) == MOTE_OK && event.kind != MOTE_CHAT_DONE) {
      text += std::to_string(event.token_id) + ":" + std::string(event.text, event.text_bytes) + " ";
    }
    EXPECT_EQ(mote_chat_take_reply(chat, turn, &error_), MOTE_OK) << error_.message;
    mote_chat_turn_close(turn);
    char* messages = nullptr;
    EXPECT_EQ(mote_chat_messages(chat, &messages, nullptr, &error_), MOTE_OK) << error_.message;
    mote_chat_close(chat);
    return text + taken(messages);
  }

  int32_t open_shared() {
    mote_model* model = nullptr;
    if (random_() % 4 == 0) {
      const int32_t code = mote_model_open(shared_.file.c_str(), nullptr, &model, &error_);
      shared_.models.put(random_, model);
      return code;
    }
    mote_session* session = nullptr;
    mote_chat* chat = nullptr;
    model = shared_.models.any(random_);
    const int32_t code = mote_session_open(model, shared_.two_threads_and_cache, &session, &error_);
    if (code == MOTE_OK) shared_.sessions.put(random_, session);
    if (mote_chat_open(model, &chat, &error_) == MOTE_OK) shared_.chats.put(random_, chat);
    return code;
  }
  int32_t use_chat() {
    mote_chat* chat = shared_.chats.any(random_);
    const char* message = kMessages[random_() % kPrompts];
    mote_chat_turn* turn = nullptr;
    const int32_t code = mote_chat_send(chat, shared_.sessions.any(random_), message, std::strlen(message),
                                        shared_.drawn, &turn, &error_);
    if (code == MOTE_OK) shared_.turns.put(random_, turn);
    return code;
  }
  int32_t use_turn() {
    mote_chat_turn* turn = shared_.turns.any(random_);
    auto event = sized<mote_chat_event>();
    switch (random_() % 8) {
      case 0: mote_chat_turn_close(turn); return MOTE_OK;
      case 1: mote_chat_turn_cancel(turn); return MOTE_OK;
      case 2: return mote_chat_take_reply(shared_.chats.any(random_), turn, &error_);
      default: return mote_chat_turn_next(turn, &event, &error_);
    }
  }
  int32_t use_generation() {
    mote_generation* generation = shared_.generations.any(random_);
    auto piece = sized<mote_piece>();
    switch (random_() % 6) {
      case 0: mote_generation_end(generation); return MOTE_OK;
      case 1: mote_generation_cancel(generation); return MOTE_OK;
      default: return mote_generation_next(generation, &piece, &error_);
    }
  }
  int32_t use_session() {
    mote_session* session = shared_.sessions.any(random_);
    const std::string path = shared_.saved + std::to_string(random_() % kSavedFiles) + "shared";
    const std::vector<int32_t> ids = ids_of(random_() % kPrompts);
    mote_session* forked = nullptr;
    mote_generation* generation = nullptr;
    int32_t code = MOTE_OK;
    switch (random_() % 9) {
      case 0: mote_session_close(session); return MOTE_OK;
      case 1: mote_session_cancel(session); return MOTE_OK;
      case 2: return mote_session_append(session, ids.data(), ids.size(), &error_);
      case 3: return mote_session_rewind(session, static_cast<int64_t>(random_() % 8), &error_);
      case 4: return mote_session_set_tokens(session, ids.data(), ids.size(), nullptr, &error_);
      case 5: return mote_session_save(session, path.c_str(), &error_);
      case 6: return mote_session_restore(session, path.c_str(), &error_);
      case 7:
        code = mote_session_fork(session, &forked, &error_);
        if (code == MOTE_OK) shared_.sessions.put(random_, forked);
        return code;
      default:
        code = mote_generation_begin(session, ids.data(), ids.size(), shared_.drawn, &generation, &error_);
        if (code == MOTE_OK) shared_.generations.put(random_, generation);
        return code;
    }
  }

  Shared& shared_;
  std::mt19937 random_;
  std::string saved_;
  mote_error error_ = sized<mote_error>();
};

bool is_of_others(int32_t code) {
  return code == MOTE_ERROR_INVALID_ARGUMENT || code == MOTE_ERROR_INVALID_STATE || code == MOTE_ERROR_CANCELLED ||
         code == MOTE_ERROR_CONTEXT_FULL || code == MOTE_ERROR_FILE_NOT_FOUND;
}

int64_t number_in(const char* variable, int64_t otherwise) {
  const char* given = std::getenv(variable);
  return given == nullptr ? otherwise : std::atoll(given);
}

class CApiLifecycles : public testing::Test {
 protected:
  void SetUp() override {
    shared_->file = file_.path();
    shared_->saved = file_.path() + ".session";
    ASSERT_EQ(mote_prefix_cache_open(1 << 20, &shared_->cache, nullptr), MOTE_OK);
    ASSERT_EQ(mote_options_set_prefix_cache(shared_->two_threads_and_cache, shared_->cache, nullptr), MOTE_OK);
    shared_->open_models();
    Lifecycle single(*shared_, seed_);
    for (size_t prompt = 0; prompt < kPrompts; ++prompt) {
      generated_[prompt] = single.own_text(Way::kGenerate, prompt).value();
      chats_[prompt] = single.own_text(Way::kChat, prompt).value();
    }
  }
  void TearDown() override {
    for (int i = 0; i < kSavedFiles; ++i) std::filesystem::remove(shared_->saved + std::to_string(i) + "shared");
    mote_prefix_cache_close(shared_->cache);
    shared_.reset();
    EXPECT_EQ(num_handle_objects(), 0u);
  }

  void sequence(uint32_t number) {
    Lifecycle life(*shared_, seed_ + 1 + number);
    for (uint32_t step = 0; step < kSteps; ++step) {
      if (life.random()() % 4 == 0) {
        compare(life, number);
      } else {
        const int32_t code = life.act();
        EXPECT_TRUE(code == MOTE_OK || is_of_others(code)) << number << ": " << code << " " << life.message();
      }
    }
  }
  std::atomic<int64_t> num_texts_{0};  // that were compared

 private:
  void compare(Lifecycle& life, uint32_t number) {
    const auto way = static_cast<Way>(life.random()() % 4);
    const size_t prompt = life.random()() % kPrompts;
    const std::optional<std::string> text = life.own_text(way, prompt);
    if (!text.has_value()) return;
    EXPECT_EQ(*text, way == Way::kChat ? chats_[prompt] : generated_[prompt])
        << number << ": " << static_cast<int>(way);
    ++num_texts_;
  }

  const uint32_t seed_ = static_cast<uint32_t>(number_in("MOTE_SOAK_SEED", 1));
  const test::TinyFile file_{test::ascii_program()};
  std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
  std::array<std::string, kPrompts> generated_, chats_;  // by one thread alone
};

bool waits_at_exit = false;

// Comes before all other initializers, so that what it leaves for the exit comes after all other destructors.
__attribute__((constructor(101))) void leave_wait() {
  std::atexit([] {
    if (waits_at_exit) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  });
}

TEST(CApiExit, of_the_process_may_come_while_threads_compute) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exit_early = [] {
    static const auto* file = new test::TinyFile(test::ascii_program());  // both for longer than the process
    static auto* shared = new Shared;
    shared->file = file->path();
    shared->open_models();
    for (uint32_t i = 0; i < 2; ++i) {
      std::thread([i] {
        Lifecycle life(*shared, i);
        for (size_t round = 0;; ++round) (void)life.own_text(round % 2 == 0 ? Way::kGenerate : Way::kChat, 1);
      }).detach();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    std::filesystem::remove(shared->file);
    waits_at_exit = true;
    std::exit(0);
  };
  EXPECT_EXIT(exit_early(), testing::ExitedWithCode(0), "");
}

// MOTE_SOAK_SEQUENCES makes more of them, MOTE_SOAK_SEED others.
TEST_F(CApiLifecycles, of_many_threads_give_the_text_of_one_thread_or_an_error) {
  const int64_t num_sequences = number_in("MOTE_SOAK_SEQUENCES", 200);
  std::atomic<uint32_t> next{0};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (uint32_t number = next++; number < num_sequences && !HasFailure(); number = next++) sequence(number);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(num_texts_, num_sequences / 2);
  RecordProperty("texts", std::to_string(num_texts_));
}

}  // namespace
}  // namespace mote
