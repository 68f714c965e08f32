// Forks, snapshots, saved sessions and the prefix cache: whatever way a session came to its tokens, it goes on to the
// same bits.
#include <gtest/gtest.h>

#include <fstream>

#include "runner/generation/generation.h"
#include "tests/runner/session/sharing_sessions.h"

namespace mote::test {
namespace {

TEST_P(SharingSessions, forks_go_on_by_themselves) {
  for (const size_t count : {1, 15, 16, 200, 256, 300, 513}) {
    const auto first = open();
    const Logits last = copy(first->prefill(some_ids(count)));
    auto second = first->fork();
    ASSERT_TRUE(second.ok()) << second.status().message();
    EXPECT_EQ(copy((*second)->logits()), last);
    EXPECT_TRUE((*second)->logit_maxima().empty());  // a head has found none for these
    auto third = (*second)->fork();
    ASSERT_TRUE(third.ok());
    // Each writes to the page that all of them hold.
    expect_exact(*first, some_ids(40, 1));
    expect_exact(**second, some_ids(50, 2));
    expect_exact(**third, some_ids(60, 4));
    expect_exact(*first, some_ids(20, 5));
    ASSERT_TRUE((*second)->rewind(1).ok());
    expect_exact(**second, some_ids(30, 6));
    expect_exact(**third, some_ids(5, 7));
  }
}

TEST_P(SharingSessions, forks_share_memory_until_they_write) {
  const auto first = open();
  EXPECT_EQ(first->held_state_bytes(), 0u);
  ASSERT_TRUE(first->append(some_ids(100)).ok());
  const uint64_t page = first->held_state_bytes();
  EXPECT_GT(page, 0u);
  const auto snapshot = *first->snapshot();
  const std::byte* shared = snapshot->states.groups[0].slabs[0].data();
  const auto second = *first->fork();
  const auto held = [](Session& session) { return (*session.snapshot())->states.groups[0].slabs[0].data(); };
  EXPECT_EQ(held(*second), shared);
  copy(second->decode(1));
  EXPECT_NE(held(*second), shared);
  EXPECT_EQ(held(*first), shared);
  EXPECT_EQ(second->held_state_bytes(), page);
}

TEST_P(SharingSessions, a_parent_may_go_before_its_forks) {
  auto first = open();
  ASSERT_TRUE(first->append(some_ids(300)).ok());
  const auto second = *first->fork();
  first.reset();
  expect_exact(*second, some_ids(9, 1));
}

TEST_P(SharingSessions, snapshots_are_taken_back_and_cut) {
  const auto session = open();
  ASSERT_TRUE(session->append(some_ids(300)).ok());
  const auto snapshot = *session->snapshot();
  ASSERT_TRUE(session->append(some_ids(200, 1)).ok());
  for (const int64_t position : {300, 299, 256, 255, 17, 1, 0}) {
    ASSERT_TRUE(session->adopt(*snapshot, position).ok());
    EXPECT_EQ(session->position(), position);
    expect_exact(*session, some_ids(20, 2));
  }
  EXPECT_EQ(session->adopt(*snapshot, 301).code(), Code::kInvalidArgument);
  EXPECT_EQ(session->adopt(*snapshot, -1).code(), Code::kInvalidArgument);
  const auto other_layout = open({.kv_dtype = KvType::kInt8, .prefill_chunk = 7});
  ASSERT_TRUE(other_layout->adopt(*snapshot, 300).ok());
  EXPECT_EQ(other_layout->position(), 300);
  const TinyFile other_file(long_program(GetParam()));
  const auto other_model = *Session::open(*Model::open(other_file.path()), {.context_length = kContext});
  EXPECT_EQ(other_model->adopt(*snapshot, 300).code(), Code::kInvalidArgument);
}

TEST_P(SharingSessions, logits_are_there_whatever_came_before) {
  const auto session = open();
  EXPECT_EQ(session->logits().status().code(), Code::kInvalidArgument);
  const Ids ids = some_ids(30);
  const Logits all = alone(ids);
  const auto row = [&](int64_t i) { return Logits(all.begin() + i * 19, all.begin() + (i + 1) * 19); };
  ASSERT_TRUE(session->append(ids).ok());
  EXPECT_EQ(copy(session->logits()), row(29));
  ASSERT_TRUE(session->rewind(12).ok());
  EXPECT_EQ(copy(session->logits()), row(11));
  EXPECT_EQ(session->position(), 12);
  EXPECT_EQ(copy((*session->fork())->logits()), row(11));
}

TEST_P(SharingSessions, set_tokens_computes_only_what_is_new) {
  const auto session = open();
  Ids ids = some_ids(100);
  EXPECT_EQ(*session->set_tokens(ids), 0);
  ids.resize(80);
  const Ids more = some_ids(30, 8);
  ids.insert(ids.end(), more.begin(), more.end());
  const int64_t common = std::mismatch(ids.begin(), ids.begin() + 100, session->tokens().begin()).first - ids.begin();
  EXPECT_EQ(*session->set_tokens(ids), common);
  EXPECT_EQ(*session->set_tokens(ids), 110);
  expect_exact(*session, some_ids(5, 9));
  EXPECT_EQ(*session->set_tokens(Ids(ids.begin(), ids.begin() + 3)), 3);
  expect_exact(*session, some_ids(5, 9));
  EXPECT_EQ(session->set_tokens({}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(session->set_tokens(Ids{1, 19}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(session->set_tokens(some_ids(kContext + 1)).status().code(), Code::kContextFull);
}

TEST_P(SharingSessions, a_saved_session_goes_on) {
  for (const KvType type : {KvType::kFloat32, KvType::kFloat16, KvType::kInt8, KvType::kInt4}) {
    for (const size_t count : {0, 1, 40, 300}) {
      const auto session = open({.kv_dtype = type});
      ASSERT_TRUE(session->append(some_ids(count)).ok());
      ASSERT_TRUE(session->save(saved_path()).ok());
      const auto restored = open({.kv_dtype = type, .threads = 2});
      ASSERT_TRUE(restored->append(some_ids(9, 5)).ok());
      const Status status = restored->restore(saved_path());
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_TRUE(std::ranges::equal(restored->tokens(), some_ids(count)));
      if (count > 0) { EXPECT_EQ(copy(restored->logits()), copy(session->logits())); }
      EXPECT_EQ(go_on(*restored, some_ids(30, 1)), go_on(*session, some_ids(30, 1)));
    }
  }
  // Another layout computes the tokens again.
  const auto longer = open({.context_length = 699, .prefill_chunk = 5});
  ASSERT_TRUE(longer->restore(saved_path()).ok());
  expect_exact(*longer, some_ids(10, 1));
  std::filesystem::remove(saved_path());
}

TEST_P(SharingSessions, saving_replaces_whole_files_and_names_what_fails) {
  const auto session = open();
  ASSERT_TRUE(session->append(some_ids(10)).ok());
  const Status status = session->save("/nowhere/at/all");
  EXPECT_EQ(status.code(), Code::kFileUnwritable);
  EXPECT_NE(status.message().find("/nowhere/at/all"), std::string::npos);
  ASSERT_TRUE(session->save(saved_path()).ok());
  ASSERT_TRUE(session->append(some_ids(10)).ok());
  ASSERT_TRUE(session->save(saved_path()).ok());
  const auto restored = open();
  ASSERT_TRUE(restored->restore(saved_path()).ok());
  EXPECT_EQ(restored->position(), 20);
  size_t beside = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(saved_path()).parent_path())) {
    beside += entry.path().string().starts_with(saved_path() + ".tmp") ? 1 : 0;
  }
  EXPECT_EQ(beside, 0u);
  std::filesystem::remove(saved_path());
}

TEST_P(SharingSessions, files_that_are_no_saved_session_of_the_model_are_refused) {
  const auto session = open();
  ASSERT_TRUE(session->append(some_ids(40)).ok());
  ASSERT_TRUE(session->save(saved_path()).ok());
  EXPECT_EQ(session->restore("/nowhere").code(), Code::kFileNotFound);
  EXPECT_EQ(session->restore(std::filesystem::temp_directory_path().string()).code(), Code::kFileUnreadable);
  EXPECT_EQ(session->restore(file_.path()).code(), Code::kInvalidSession);
  EXPECT_EQ(open({.context_length = 39})->restore(saved_path()).code(), Code::kContextFull);
  ProgramBuilder builder = long_program(GetParam());
  builder.program.bos_token_id = 1;
  const TinyFile other(builder);
  const auto stranger = *Session::open(*Model::open(other.path()), {.context_length = kContext});
  const Status status = stranger->restore(saved_path());
  EXPECT_EQ(status.code(), Code::kInvalidSession);
  EXPECT_NE(status.message().find("another model"), std::string::npos) << status.message();

  // Every byte changed and every length: an error, and the session stays as it was.
  std::string bytes;
  {
    std::ifstream in(saved_path(), std::ios::binary);
    bytes.assign((std::istreambuf_iterator<char>(in)), {});
  }
  const auto write = [&](const std::string& text) {
    std::ofstream(saved_path(), std::ios::binary | std::ios::trunc) << text;
  };
  for (size_t i = 0; i < bytes.size(); i += i < 200 ? 1 : 197) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x41);
    write(changed);
    if (i >= 36 && i < 40) continue;  // reserved
    EXPECT_FALSE(session->restore(saved_path()).ok()) << i;
    write(bytes.substr(0, i));
    EXPECT_FALSE(session->restore(saved_path()).ok()) << i;
  }
  write(bytes + "x");
  EXPECT_FALSE(session->restore(saved_path()).ok());
  EXPECT_EQ(session->position(), 40);
  expect_exact(*session, some_ids(5));
  std::filesystem::remove(saved_path());
}

TEST_P(SharingSessions, a_full_context_forgets_the_oldest_tokens) {
  const auto session = open({.context_length = 40, .overflow = Overflow::kShift, .num_keep = 4});
  const Ids ids = some_ids(100);
  for (const int32_t id : ids) {
    copy(session->decode(id));
    EXPECT_LE(session->position(), 40);
    EXPECT_TRUE(std::ranges::equal(session->tokens().first(std::min<size_t>(4, session->tokens().size())),
                                   Ids(ids.begin(), ids.begin() + std::min<ptrdiff_t>(4, session->position()))));
  }
  EXPECT_EQ(session->forgotten_tokens() + session->position(), 100);
  EXPECT_TRUE(std::ranges::equal(session->tokens().subspan(4), Ids(ids.end() - session->position() + 4, ids.end())));
  const Logits expected = alone(Ids(session->tokens().begin(), session->tokens().end()));
  EXPECT_EQ(copy(session->logits()), Logits(expected.end() - 19, expected.end()));
  // What does not fit beside what is kept is refused.
  EXPECT_EQ(session->append(some_ids(37)).code(), Code::kContextFull);
  ASSERT_TRUE(session->append(some_ids(36)).ok());
  EXPECT_EQ(session->position(), 40);
  EXPECT_EQ(Session::open(model_, {.context_length = 40, .num_keep = 40}).status().code(), Code::kInvalidArgument);
}

TEST_P(SharingSessions, deferred_tokens_are_there_for_whatever_comes_next) {
  const auto session = open({.prefill_chunk = 8});
  const auto begin = [&](size_t count) {
    session->reset();
    ASSERT_TRUE(session->append(some_ids(20)).ok());
    ASSERT_TRUE(session->defer(some_ids(count, 1)).ok());
    EXPECT_TRUE(session->has_deferred());
    EXPECT_EQ(session->position(), 20 + static_cast<int64_t>(count));
  };
  for (const size_t count : {1, 7, 30}) {
    begin(count);
    expect_exact(*session, some_ids(5, 2));
    begin(count);
    Ids ids(session->tokens().begin(), session->tokens().end());
    const Logits all = alone(ids);
    EXPECT_EQ(copy(session->logits()), Logits(all.end() - 19, all.end()));
    begin(count);
    expect_exact(**session->fork(), some_ids(5, 3));
    begin(count);
    ASSERT_TRUE(session->save(saved_path()).ok());
    const auto restored = open();
    ASSERT_TRUE(restored->restore(saved_path()).ok());
    expect_exact(*restored, some_ids(5, 4));
    for (const int64_t position :
         {20 + static_cast<int64_t>(count), 20 + static_cast<int64_t>(count) / 2, int64_t{20}, int64_t{9}}) {
      begin(count);
      ASSERT_TRUE(session->rewind(position).ok());
      EXPECT_EQ(session->position(), position);
      expect_exact(*session, some_ids(5, 5));
    }
    begin(count);
    ids = some_ids(40, 6);
    EXPECT_EQ(*session->set_tokens(ids), std::ranges::mismatch(ids, some_ids(20)).in1 - ids.begin());
    expect_exact(*session, some_ids(5, 7));
  }
  std::filesystem::remove(saved_path());
}

TEST_P(SharingSessions, a_cancel_leaves_deferred_tokens_in_place) {
  const auto session = open({.threads = 2, .prefill_chunk = 4});
  for (int point = 0; point < 200; ++point) {
    session->reset();
    ASSERT_TRUE(session->append(some_ids(20)).ok());
    ASSERT_TRUE(session->defer(some_ids(40, 1)).ok());
    Ids ids(session->tokens().begin(), session->tokens().end());
    std::thread canceller([&] {
      for (int i = 0; i < point * 40; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);  // some time
      session->cancel();
    });
    const auto logits = session->decode(5);
    canceller.join();
    session->forget_cancel();
    if (logits.ok()) ids.push_back(5);
    ASSERT_EQ(Ids(session->tokens().begin(), session->tokens().end()), ids);
    if (point % 20 == 0) expect_exact(*session, some_ids(3, 2));
  }
}

TEST_P(SharingSessions, deferred_tokens_make_room_as_others_do) {
  const auto session = open({.context_length = 40, .overflow = Overflow::kShift, .num_keep = 4});
  const Ids ids = some_ids(100);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i % 7 == 0)
      copy(session->decode(ids[i]));
    else
      ASSERT_TRUE(session->defer({&ids[i], 1}).ok());
    EXPECT_LE(session->position(), 40);
  }
  EXPECT_EQ(session->forgotten_tokens() + session->position(), 100);
  expect_exact(*session, some_ids(1));
  const auto full = open({.context_length = 8});
  EXPECT_EQ(full->defer(some_ids(9)).code(), Code::kContextFull);
  EXPECT_EQ(full->defer(Ids{19}).code(), Code::kInvalidArgument);
  EXPECT_EQ(full->position(), 0);
}

TEST_P(SharingSessions, the_prefix_cache_gives_what_others_computed) {
  const auto cache = std::make_shared<PrefixCache>(uint64_t{1} << 30);
  const Ids system = some_ids(300);
  const auto with = [&](int32_t seed, size_t count) {
    Ids ids = system;
    const Ids more = some_ids(count, seed);
    ids.insert(ids.end(), more.begin(), more.end());
    return ids;
  };
  const auto first = open({.prefix_cache = cache});
  ASSERT_TRUE(first->append(with(1, 20)).ok());
  EXPECT_EQ(cache->statistics().snapshots, 1);
  const auto second = open({.context_length = 400, .prefix_cache = cache});
  const Ids ids = with(2, 30);
  const Logits logits = copy(second->prefill(ids));
  const Logits expected = alone(ids);
  EXPECT_EQ(logits, Logits(expected.end() - 19, expected.end()));
  EXPECT_EQ(cache->statistics().hits, 1);
  EXPECT_GE(cache->statistics().reused_tokens, 300);
  expect_exact(*first, some_ids(10, 4));
  expect_exact(*second, some_ids(10, 4));
  // The same text again is all there, also when a session with it was closed.
  ASSERT_TRUE(open({.prefix_cache = cache})->append(with(7, 100)).ok());
  const auto third = open({.prefix_cache = cache});
  EXPECT_EQ(*third->set_tokens(with(7, 100)), 400);
  expect_exact(*third, some_ids(10, 5));
  // Other kinds of caches and other texts find nothing.
  const int64_t hits = cache->statistics().hits;
  ASSERT_TRUE(open({.kv_dtype = KvType::kInt8, .prefix_cache = cache})->append(system).ok());
  ASSERT_TRUE(open({.prefix_cache = cache})->append(some_ids(50, 11)).ok());
  EXPECT_EQ(cache->statistics().hits, hits);
  cache->clear();
  EXPECT_EQ(cache->statistics().bytes, 0u);
  EXPECT_EQ(cache->statistics().snapshots, 0);
}

TEST_P(SharingSessions, rewinding_to_a_prefix_takes_the_longest_from_session_or_cache) {
  const auto cache = std::make_shared<PrefixCache>(uint64_t{64} << 20);
  const auto first = open({.prefix_cache = cache});
  const Ids ids = some_ids(200);
  ASSERT_TRUE(first->append(ids).ok());
  const auto second = open({.prefix_cache = cache});
  Ids text = ids;
  text.push_back(7);
  EXPECT_EQ(*second->rewind_to_prefix(text), 200);
  EXPECT_EQ(second->position(), 200);
  expect_exact(*second, Ids{7});
  EXPECT_EQ(*second->rewind_to_prefix(ids), 199);  // the last id is for the logits
  expect_exact(*second, Ids{ids.back()});
  const auto alone_session = open();
  EXPECT_EQ(*alone_session->rewind_to_prefix(ids), 0);
  ASSERT_TRUE(alone_session->append(std::span(ids).first(50)).ok());
  EXPECT_EQ(*alone_session->rewind_to_prefix(ids), 50);
  EXPECT_EQ(*alone_session->rewind_to_prefix(std::span(ids).first(1)), 0);
  EXPECT_EQ(alone_session->rewind_to_prefix({}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(alone_session->rewind_to_prefix(Ids{19}).status().code(), Code::kInvalidArgument);
}

TEST_P(SharingSessions, the_prefix_cache_keeps_to_its_bytes) {
  const auto all = std::make_shared<PrefixCache>(uint64_t{1} << 30);
  ASSERT_TRUE(open({.prefix_cache = all})->append(some_ids(100, 0)).ok());
  const uint64_t one = all->statistics().bytes;
  const auto few = std::make_shared<PrefixCache>(one * 5 / 2);
  for (int32_t seed = 0; seed < 6; ++seed) {
    ASSERT_TRUE(open({.prefix_cache = few})->append(some_ids(100, seed)).ok());
    EXPECT_LE(few->statistics().bytes, one * 5 / 2);
  }
  EXPECT_EQ(few->statistics().snapshots, 2);
  const auto none = std::make_shared<PrefixCache>(one / 2);
  ASSERT_TRUE(open({.prefix_cache = none})->append(some_ids(100)).ok());
  EXPECT_EQ(none->statistics().bytes, 0u);
}

INSTANTIATE_TEST_SUITE_P(Windows, SharingSessions, testing::Values(0, 6, 300));

}  // namespace
}  // namespace mote::test
