// Sessions of a tiny model whose windows are the test's parameter, and what each text gives alone.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runner/session/session.h"
#include "tests/runner/session/tiny_file.h"

namespace mote::test {

using Ids = std::vector<int32_t>;
using Logits = std::vector<float>;

inline constexpr int64_t kContext = 700;  // three pages

inline Ids some_ids(size_t count, int32_t seed = 3) {
  Ids ids;
  for (size_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>((i * i + i * 7 + static_cast<size_t>(seed)) % 19));
  return ids;
}

inline ProgramBuilder long_program(int32_t window) {
  ProgramBuilder builder = tiny_program({.window = window});
  builder.program.max_position_embeddings = 1024;
  return builder;
}

inline Logits copy(const Result<std::span<const float>>& logits) {
  EXPECT_TRUE(logits.ok()) << logits.status().message();
  return logits.ok() ? Logits(logits->begin(), logits->end()) : Logits();
}

class SharingSessions : public testing::TestWithParam<int32_t> {
 protected:
  SharingSessions() : file_(long_program(GetParam())), model_(*Model::open(file_.path())) {}

  std::unique_ptr<Session> open(SessionOptions options = {}) const {
    if (options.context_length == 0) options.context_length = kContext;
    if (options.threads == 0) options.threads = 1;
    auto session = Session::open(model_, options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    return *std::move(session);
  }
  // The logits after each of `ids` in a session that has read nothing else.
  Logits alone(const Ids& ids) const {
    Logits logits(ids.size() * 19);
    EXPECT_TRUE(open()->verify(ids, logits.data()).ok());
    return logits;
  }
  // Those after each of `more`, behind what the session has.
  static Logits go_on(Session& session, const Ids& more) {
    Logits logits(more.size() * 19);
    const Status status = session.verify(more, logits.data());
    EXPECT_TRUE(status.ok()) << status.message();
    return logits;
  }
  void expect_exact(Session& session, const Ids& more) const {
    Ids ids(session.tokens().begin(), session.tokens().end());
    ids.insert(ids.end(), more.begin(), more.end());
    const Logits expected = alone(ids);
    EXPECT_EQ(go_on(session, more), Logits(expected.end() - static_cast<ptrdiff_t>(more.size() * 19), expected.end()));
  }
  std::string saved_path() const { return file_.path() + ".session"; }

  TinyFile file_;
  std::shared_ptr<const Model> model_;
};

}  // namespace mote::test
