// Sessions that mix adapters in, and files that are refused.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "runner/session/adapters/adapter.h"
#include "tests/runner/session/sharing_sessions.h"
#include "tests/runner/session/tiny_adapter.h"

namespace mote::test {
namespace {

std::string write(const std::string& name, const Bytes& bytes) {
  std::string path = testing::TempDir() + "/" + name + ".mote-adapter";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path;
}

class Adapters : public SharingSessions {
 protected:
  Adapters()
      : style_(write("style", tiny_adapter(*model_, 1).build())),
        tone_(write("tone", tiny_adapter(*model_, 2).build())) {}

  std::unique_ptr<Session> open_with(std::vector<std::string> adapters, SessionOptions options = {}) const {
    options.adapters = std::move(adapters);
    return open(options);
  }
  Logits alone_with(const std::vector<std::string>& adapters, const Ids& ids) const {
    return go_on(*open_with(adapters), ids);
  }
  Status load(const AdapterFile& file) const {
    return Adapter::of_bytes(*model_, "a.mote-adapter", AdapterFile(copy_of(file)).build()).status();
  }
  static AdapterFile copy_of(const AdapterFile& file) { return {fb::AdapterT(file.description), file.data}; }

  const std::string style_, tone_;
};

TEST_P(Adapters, change_the_logits_and_leave_other_sessions_alone) {
  const Ids ids = some_ids(40);
  const Logits plain = alone(ids), style = alone_with({style_}, ids), both = alone_with({style_, tone_ + "=0.5"}, ids);
  EXPECT_NE(plain, style);
  EXPECT_NE(style, both);
  EXPECT_EQ(plain, alone_with({}, ids));
  EXPECT_EQ(plain, alone_with({style_ + "=0"}, ids));
  EXPECT_EQ(style, alone_with({style_ + "=1.0"}, ids));
}

TEST_P(Adapters, of_a_session_can_be_changed_while_it_has_tokens) {
  const Ids ids = some_ids(30), more = some_ids(9, 5);
  const auto session = open();
  go_on(*session, ids);
  ASSERT_TRUE(session->set_adapters(*load_mix(*model_, {style_})).ok());
  EXPECT_EQ(session->tokens().size(), ids.size());
  const auto fresh = open_with({style_});
  go_on(*fresh, ids);
  EXPECT_EQ(go_on(*session, more), go_on(*fresh, more));
  ASSERT_TRUE(session->set_adapters({}).ok());
  const auto plain = open();
  go_on(*plain, ids);
  go_on(*plain, more);
  EXPECT_EQ(copy(session->logits()), copy(plain->logits()));
}

TEST_P(Adapters, are_those_of_a_fork) {
  const Ids ids = some_ids(30), more = some_ids(9, 5);
  const auto session = open();
  ASSERT_TRUE(session->set_adapters(*load_mix(*model_, {tone_})).ok());
  go_on(*session, ids);
  const auto fork = *session->fork();
  EXPECT_EQ(go_on(*fork, more), go_on(*session, more));
}

TEST_P(Adapters, keep_apart_what_a_prefix_cache_has) {
  const Ids ids = some_ids(60);
  const auto cache = std::make_shared<PrefixCache>(uint64_t{64} << 20);
  SessionOptions options;
  options.prefix_cache = cache;
  const auto read = [&](std::vector<std::string> adapters) {
    return copy(open_with(std::move(adapters), options)->prefill(ids));
  };
  const Logits plain = read({}), style = read({style_});
  EXPECT_EQ(cache->statistics().hits, 0);
  EXPECT_EQ(read({style_ + "=0.5"}), copy(open_with({style_ + "=0.5"})->prefill(ids)));
  EXPECT_EQ(cache->statistics().hits, 0);
  EXPECT_EQ(read({}), plain);
  EXPECT_EQ(read({style_}), style);
  EXPECT_EQ(cache->statistics().hits, 2);
}

TEST_P(Adapters, must_be_those_of_a_saved_session) {
  const Ids ids = some_ids(30), more = some_ids(9, 5);
  const std::string path = testing::TempDir() + "/adapted.session";
  const auto session = open_with({style_ + "=0.5", tone_});
  go_on(*session, ids);
  ASSERT_TRUE(session->save(path).ok());
  const Status refused = open()->restore(path);
  EXPECT_EQ(refused.code(), Code::kInvalidSession);
  EXPECT_NE(refused.message().find("adapters = style=0.5, tone: the session has no adapter"), std::string::npos)
      << refused.message();
  EXPECT_EQ(open_with({style_, tone_})->restore(path).code(), Code::kInvalidSession);
  EXPECT_EQ(open_with({tone_, style_ + "=0.5"})->restore(path).code(), Code::kInvalidSession);
  const auto restored = open_with({style_ + "=0.5", tone_});
  const Status status = restored->restore(path);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(go_on(*restored, more), go_on(*session, more));
}

TEST_P(Adapters, are_read_once_while_somebody_uses_them) {
  const auto first = *load_mixed(*model_, style_), second = *load_mixed(*model_, style_ + "=2");
  EXPECT_EQ(first.adapter, second.adapter);
  EXPECT_EQ(second.weight, 2.0f);
  EXPECT_EQ(first.adapter->name(), "style");
}

INSTANTIATE_TEST_SUITE_P(Windows, Adapters, testing::Values(0, 8));

class AdapterFiles : public Adapters {};

TEST_P(AdapterFiles, that_are_not_whole_are_refused_at_every_length) {
  const Bytes whole = tiny_adapter(*model_).build();
  for (size_t size = 0; size < whole.size(); size += size < 400 ? 1 : 61) {
    const Status status = Adapter::of_bytes(*model_, "a.mote-adapter", std::span(whole).first(size)).status();
    EXPECT_EQ(status.code(), Code::kInvalidProgram) << size;
    EXPECT_TRUE(status.message().starts_with("a.mote-adapter: ")) << status.message();
  }
}

TEST_P(AdapterFiles, say_which_field_is_wrong_and_what_would_be_accepted) {
  struct Case {
    std::function<void(AdapterFile&)> change;
    std::string message;
  };
  const auto part = [](auto change) { return [change](AdapterFile& file) { change(*file.description.parts[1]); }; };
  const std::vector<Case> cases = {
      {part([](auto& p) { p.rows = 17; }),
       "parts[1] (v_proj): rows 48 + 17: must be at least one and within the weight's 64"},
      {part([](auto& p) { p.first_row = -1; }), "parts[1] (v_proj): rows -1 + 16"},
      {part([](auto& p) { p.rows = 0; }), "parts[1] (v_proj): rows 48 + 0"},
      {part([](auto& p) { p.first_row = 31; }), "parts[1] (v_proj): rows 31..46: another part has some of them"},
      {part([](auto& p) { p.columns = 31; }), "parts[1] (v_proj): columns = 31: must be 32"},
      {part([](auto& p) { p.rank = 0; }), "parts[1] (v_proj): rank = 0: must be 1..65536"},
      {part([](auto& p) { p.rank = int64_t{1} << 40; }), "parts[1] (v_proj): rank = 1099511627776"},
      {part([](auto& p) { p.rank = 60000; }), "parts[1].a_offset = "},
      {part([](auto& p) { p.a_offset = 32; }), "parts[1].a_offset = 32: must be a multiple of 64"},
      {part([](auto& p) { p.b_offset = uint64_t{1} << 63; }), "parts[1].b_offset = "},
      {part([](auto& p) { p.gains_offset = -64; }), "parts[1].gains_offset = "},
      {part([](auto& p) { p.dtype = 3; }),
       "parts[1] (v_proj): dtype = 3: must be 0 (float32), 1 (float16) or 2 (bfloat16)"},
      {part([](auto& p) { p.scale = std::numeric_limits<float>::infinity(); }), "scale: must be finite"},
      {part([](auto& p) { p.weight = "model.norm.weight"; }), "weight model.norm.weight: must be one that a linear of"},
      {part([](auto& p) { p.weight = "nothing"; }), "weight nothing: must be one that a linear of"},
      {[](AdapterFile& file) { file.description.parts.clear(); }, "has 0 parts: must have 1..262144"},
      {[](AdapterFile& file) { file.data.resize(64); }, "parts[0].a_offset = "},
  };
  const AdapterFile good = tiny_adapter(*model_);
  EXPECT_TRUE(load(good).ok()) << load(good).message();
  for (const Case& each : cases) {
    AdapterFile file = copy_of(good);
    each.change(file);
    const Status status = load(file);
    EXPECT_EQ(status.code(), Code::kInvalidProgram) << each.message;
    EXPECT_NE(status.message().find(each.message), std::string::npos) << status.message();
  }
}

TEST_P(AdapterFiles, of_another_base_are_refused) {
  AdapterFile file = tiny_adapter(*model_);
  file.description.base->weights_crc32 ^= 1;
  const Status status = load(file);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("of tiny: "), std::string::npos) << status.message();
  const TinyFile other(long_program(16));
  const auto other_model = *Model::open(other.path());
  const auto adapter = Adapter::of_bytes(*other_model, "other", tiny_adapter(*other_model).build());
  ASSERT_TRUE(adapter.ok()) << adapter.status().message();
  EXPECT_EQ(open()->set_adapters({{*adapter, 1.0f}}).code(), Code::kInvalidArgument);
}

TEST_P(AdapterFiles, must_have_finite_weights) {
  for (const char* weight : {"nan", "inf", "x", "", "1e400"})
    EXPECT_EQ(load_mixed(*model_, style_ + "=" + weight).status().code(), Code::kInvalidArgument) << weight;
  EXPECT_EQ(load_mixed(*model_, "/nowhere/a.mote-adapter").status().code(), Code::kFileNotFound);
}

INSTANTIATE_TEST_SUITE_P(Windows, AdapterFiles, testing::Values(0));

}  // namespace
}  // namespace mote::test
