// Calls of the C API in random order, with handles that are open, closed or of another kind.
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/runner/capi/every_call.h"

namespace mote {
namespace {

constexpr size_t kMostOpen = 4;  // handles of each kind that are open beside the fixture's

class CApiSequences : public CApiMisuse {
 protected:
  void SetUp() override {
    CApiMisuse::SetUp();
    kinds_ = kinds();
    for (const Kind& each : kinds_) places_.push_back({each.handle});
    closed_.resize(kinds_.size());
  }
  void TearDown() override {
    for (size_t kind = 0; kind < kinds_.size(); ++kind) {
      for (size_t i = 1; i < places_[kind].size(); ++i) kinds_[kind].close(places_[kind][i]);
    }
    CApiMisuse::TearDown();
  }

  // One call; what it opened is kept for later ones.
  void step() {
    const size_t kind = random_() % kinds_.size();
    const Kind& each = kinds_[kind];
    const auto& call = each.calls[random_() % each.calls.size()];
    error_.message[0] = '\0';
    switch (random_() % 8) {
      case 0: return expect_refused_now(kind, call, closed_[kind], "it was closed");
      case 1: {
        const size_t other = (kind + 1 + random_() % (kinds_.size() - 1)) % kinds_.size();
        return expect_refused_now(kind, call, places_[other], "handle of a ");
      }
      case 2: return close_one(kind);
      default: break;
    }
    const int32_t code = call(any_of(places_[kind]));
    EXPECT_EQ(code == MOTE_OK, error_.message[0] == '\0') << each.name << ": " << code << " " << error_.message;
    EXPECT_NE(code, MOTE_ERROR_INTERNAL) << each.name << ": " << error_.message;
    worked_ += code == MOTE_OK;
    keep_what_was_made();
  }
  int64_t worked_ = 0;
  int64_t refused_ = 0;  // for their handles

 private:
  void* any_of(const std::vector<void*>& handles) { return handles[random_() % handles.size()]; }

  void expect_refused_now(size_t kind, const std::function<int32_t(void*)>& call, const std::vector<void*>& handles,
                          const char* reason) {
    if (handles.empty()) return;
    ++refused_;
    const int32_t code = call(any_of(handles));
    if (code == MOTE_ERROR_INVALID_STATE) return;  // of the fixture's session, which continues in a batch
    EXPECT_EQ(code, MOTE_ERROR_INVALID_ARGUMENT) << kinds_[kind].name;
    EXPECT_NE(std::strstr(error_.message, reason), nullptr) << kinds_[kind].name << ": " << error_.message;
  }
  void close_one(size_t kind) {
    std::vector<void*>& open = places_[kind];
    if (open.size() == 1) return;  // the fixture's, which other calls need
    std::swap(open[1 + random_() % (open.size() - 1)], open.back());
    kinds_[kind].close(open.back());
    closed_[kind].push_back(open.back());
    open.pop_back();
  }
  template <typename Handle>
  void keep(const char* name, Handle*& made) {
    if (made == nullptr) return;
    size_t kind = 0;
    while (kind < kinds_.size() && std::strcmp(kinds_[kind].name, name) != 0) ++kind;
    ASSERT_LT(kind, kinds_.size()) << name;
    places_[kind].push_back(std::exchange(made, nullptr));
    if (places_[kind].size() > 1 + kMostOpen) close_one(kind);
  }
  void keep_what_was_made() {
    keep("model", made_.model);
    keep("session", made_.session);
    keep("generation", made_.generation);
    keep("batch", made_.batch);
    keep("vocabulary", made_.vocabulary);
    keep("grammar", made_.grammar);
    keep("constraint", made_.constraint);
    keep("constraint", copy_);
    keep("prompt", made_.prompt);
    keep("reply", made_.reply);
    keep("list of beams", made_.beams);
    keep("list of files", made_.files);
    keep("download", made_.download);
    mote_chat_turn_close(std::exchange(made_.turn, nullptr));
    mote_string_free(std::exchange(text_, nullptr));
  }

  std::vector<Kind> kinds_;
  std::vector<std::vector<void*>> places_;  // of each kind: the fixture's handle, then open ones
  std::vector<std::vector<void*>> closed_;
  std::mt19937 random_{1};
};

// MOTE_SOAK_CALLS makes more of them.
TEST_F(CApiSequences, of_any_calls_break_nothing) {
  const char* given = std::getenv("MOTE_SOAK_CALLS");
  const int64_t calls = given == nullptr ? 3000 : std::atoll(given);
  for (int64_t i = 0; i < calls && !HasFailure(); ++i) step();
  EXPECT_GT(worked_, calls / 10);
  EXPECT_GT(refused_, calls / 10);
  RecordProperty("calls", std::to_string(calls));
}

}  // namespace
}  // namespace mote
