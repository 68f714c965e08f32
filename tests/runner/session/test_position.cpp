// Random transitions of a position, and random calls on a session, against models that are naive.
#include "runner/session/position.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "tests/runner/session/random_ids.h"
#include "tests/runner/session/sharing_sessions.h"

namespace mote::test {
namespace {

enum class Place { kComputed, kDeferred, kDrafted };

struct PlacedId {
  int32_t id;
  Place place;
};

// What a position says, as one list of ids that know their place. Logits are told apart by a number of their own: the
// first of a call's rows, plus the row, or negative where they are kept.
class NaivePosition {
 public:
  std::vector<PlacedId> ids;
  bool is_interrupted = false;
  std::optional<int64_t> logits;

  Ids of(Place place) const {
    Ids result;
    for (const PlacedId& placed : ids) {
      if (placed.place == place) result.push_back(placed.id);
    }
    return result;
  }
  size_t count(Place place) const { return of(place).size(); }
  void add(std::span<const int32_t> more, Place place) {
    for (const int32_t id : more) ids.push_back({id, place});
  }
  void drop(Place place) {
    std::erase_if(ids, [&](const PlacedId& placed) { return placed.place == place; });
  }
};

// Does to a position and to a naive one the same.
class BothPositions {
 public:
  explicit BothPositions(uint32_t seed) : random_(seed) { position_.reserve(64, 8); }

  void step() {
    switch (random_() % 9) {
      case 0: call(); break;
      case 1: call(); break;
      case 2: fail(); break;
      case 3: accept(); break;
      case 4: defer(); break;
      case 5: truncate(); break;
      case 6: drop(); break;
      case 7: adopt(); break;
      default: random_() % 4 == 0 ? reset() : forget();
    }
  }

  void compare() const {
    Ids ids = naive_.of(Place::kComputed);
    EXPECT_EQ(position_.num_computed(), static_cast<int64_t>(ids.size()));
    EXPECT_EQ(position_.num_held(), static_cast<int64_t>(ids.size() + naive_.count(Place::kDrafted)));
    const Ids deferred = naive_.of(Place::kDeferred);
    ids.insert(ids.end(), deferred.begin(), deferred.end());
    EXPECT_EQ(list(position_.ids()), ids);
    EXPECT_EQ(position_.count(), static_cast<int64_t>(ids.size()));
    EXPECT_EQ(list(position_.deferred()), deferred);
    EXPECT_EQ(list(position_.drafted()), naive_.of(Place::kDrafted));
    EXPECT_EQ(position_.is_interrupted(), naive_.is_interrupted);
    EXPECT_EQ(logits(), naive_.logits);
  }

 private:
  static Ids list(std::span<const int32_t> ids) { return {ids.begin(), ids.end()}; }
  Ids some(size_t most) { return random_ids(random_, 1 + random_() % most, 100); }

  std::optional<int64_t> logits() const {
    EXPECT_FALSE(position_.has_row() && !position_.kept_logits().empty());
    if (position_.has_row()) return position_.row().call.tokens + static_cast<int64_t>(position_.row().index);
    if (!position_.kept_logits().empty()) return static_cast<int64_t>(position_.kept_logits().front());
    return std::nullopt;
  }

  void begin(bool can_go_back) {
    position_.drop_drafted();
    position_.drop_deferred();
    position_.begin_call(can_go_back);
    naive_.drop(Place::kDrafted);
    naive_.drop(Place::kDeferred);
    naive_.logits.reset();
    naive_.is_interrupted = !can_go_back;
    compare();
  }
  void call() {
    begin(random_() % 2 == 0);
    const Ids ids = some(5), drafted = random_() % 2 == 0 ? some(4) : Ids();
    const bool is_lasting = !drafted.empty() || random_() % 2 == 0;
    naive_.add(ids, Place::kComputed);
    naive_.add(drafted, Place::kDrafted);
    naive_.is_interrupted = false;
    if (random_() % 3 == 0 && drafted.empty()) return position_.end_call(ids);
    const LogitsRow row{{0, next_call_ += 100, ids.size() + drafted.size(), true}, ids.size() - 1};
    position_.end_call(ids, drafted, row, is_lasting);
    if (is_lasting) naive_.logits = next_call_ + static_cast<int64_t>(ids.size()) - 1;
  }
  void fail() { begin(random_() % 2 == 0); }
  void accept() {
    const auto first = std::ranges::find(naive_.ids, Place::kDrafted, &PlacedId::place);
    if (first == naive_.ids.end()) return;
    position_.accept_drafted();
    first->place = Place::kComputed;
    ++*naive_.logits;
  }
  void defer() {
    const Ids ids = some(3);
    position_.drop_drafted();
    position_.defer(ids);
    naive_.drop(Place::kDrafted);
    naive_.add(ids, Place::kDeferred);
    naive_.logits.reset();
  }
  void truncate() {
    position_.drop_drafted();
    naive_.drop(Place::kDrafted);
    const size_t count = random_() % (naive_.ids.size() + 1);
    position_.truncate(static_cast<int64_t>(count));
    if (count < naive_.ids.size()) naive_.logits.reset();
    naive_.ids.resize(count);
  }
  void drop() {
    const bool is_drafted = random_() % 2 == 0;
    is_drafted ? position_.drop_drafted() : position_.drop_deferred();
    naive_.drop(is_drafted ? Place::kDrafted : Place::kDeferred);
  }
  void adopt() {
    const Ids ids = some(6);
    naive_ = {};
    naive_.add(ids, Place::kComputed);
    if (random_() % 2 == 0) naive_.logits = --next_kept_;
    position_.adopt(ids, naive_.logits.has_value() ? std::vector{static_cast<float>(next_kept_)} : Logits());
  }
  void forget() {
    position_.drop_drafted();
    position_.forget_logits();
    naive_.drop(Place::kDrafted);
    naive_.logits.reset();
  }
  void reset() {
    position_.reset();
    naive_ = {};
  }

  std::mt19937 random_;
  Position position_;
  NaivePosition naive_;
  int64_t next_call_ = 0;
  int64_t next_kept_ = 0;
};

TEST(Position, is_what_a_naive_one_is_after_any_transitions) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    BothPositions both(seed);
    for (int step = 0; step < 300; ++step) {
      both.step();
      both.compare();
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", step " << step;
    }
  }
}

TEST(Position, counts_what_shifts_take_away) {
  Position position;
  position.count_forgotten(3);
  position.reset();
  position.count_forgotten(4);
  EXPECT_EQ(position.num_forgotten(), 7);
}

#if defined(MOTE_ASSERTIONS)
TEST(PositionDeathTest, a_transition_out_of_order_aborts) {
  const Ids ids{1, 2};
  Position position;
  position.defer(ids);
  EXPECT_DEATH(position.begin_call(true), "does not hold");
  EXPECT_DEATH(position.accept_drafted(), "does not hold");
  EXPECT_DEATH(position.truncate(3), "does not hold");
}
#endif

// A session on which everything may be called, and the ids that it should have.
class RandomCalls : public SharingSessions {
 protected:
  void step(Session& session) {
    const Ids more = random_ids(random_, 1 + random_() % 12, 19);
    switch (random_() % 9) {
      case 0: return read(more, session.append(more));
      case 1: return read(more, session.defer(more));
      case 2: return draft(session, more);
      case 3: return draft(session, more);
      case 4: return rewind(session, random_() % (ids_.size() + 1));
      case 5: return rewind(session, ids_.size() - std::min<size_t>(ids_.size(), random_() % 3));
      case 6: return cancel(session, more);
      case 7: return go_back_to_a_snapshot(session, more);
      default: ids_ = more; EXPECT_TRUE(session.set_tokens(more).ok());
    }
  }
  void compare(Session& session) {
    ASSERT_EQ(Ids(session.tokens().begin(), session.tokens().end()), ids_);
    if (ids_.empty() || random_() % 2 == 0) return;
    const Logits all = alone(ids_);
    EXPECT_EQ(copy(session.logits()), Logits(all.end() - 19, all.end()));
  }

  Ids ids_;

 private:
  void read(const Ids& more, const Status& status) {
    EXPECT_TRUE(status.ok()) << status.message();
    ids_.insert(ids_.end(), more.begin(), more.end());
  }
  // Decodes the first of `ids` with the others drafted, and of these as many as come to be.
  void draft(Session& session, const Ids& ids) {
    const size_t num_drafted = std::min(ids.size() - 1, session.longest_draft());
    EXPECT_TRUE(session.decode(ids[0], std::span(ids).subspan(1, num_drafted)).ok());
    ids_.push_back(ids[0]);
    const size_t num_right = random_() % (num_drafted + 1);
    for (size_t i = 1; i <= num_right; ++i) {
      ids_.push_back(ids[i]);
      const Logits all = alone(ids_);
      EXPECT_EQ(copy(session.decode(ids[i])), Logits(all.end() - 19, all.end()));
    }
  }
  void rewind(Session& session, size_t to) {
    ids_.resize(to);
    EXPECT_TRUE(session.rewind(static_cast<int64_t>(to)).ok());
  }
  void cancel(Session& session, const Ids& more) {
    if (session.has_deferred()) return;  // a cancelled call may read a part of it
    session.cancel();
    EXPECT_EQ(session.prefill(more).status().code(), Code::kCancelled);
  }
  void go_back_to_a_snapshot(Session& session, const Ids& more) {
    const auto snapshot = session.snapshot();
    ASSERT_TRUE(snapshot.ok());
    EXPECT_TRUE(session.append(more).ok());
    EXPECT_TRUE(session.adopt(**snapshot, static_cast<int64_t>(ids_.size())).ok());
  }

  std::mt19937 random_{7};
};

TEST_P(RandomCalls, leave_the_ids_and_the_logits_that_they_should) {
  const auto session = open({.prefill_chunk = 5});
  for (int i = 0; i < 300; ++i) {
    step(*session);
    if (session->position() > 100) session->reset(), ids_.clear();
    compare(*session);
    ASSERT_FALSE(HasFailure()) << "step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, RandomCalls, testing::Values(0, 6));

}  // namespace
}  // namespace mote::test
