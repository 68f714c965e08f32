// Why `verify` refuses sum_model after one edit.
#pragma once

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "runner/program/verified.h"
#include "tests/runner/program/test_ops.h"

namespace mote::test {

using Edit = std::function<void(fb::ProgramT&)>;

// Why a file is refused; "" if it is not.
inline std::string refusal_of(const Bytes& file) {
  auto mapped = map_bytes("test.mote", file);
  if (!mapped.ok()) return mapped.status().message();
  const auto verified = verify(*std::move(mapped));
  if (verified.ok()) return "";
  EXPECT_EQ(verified.status().code(), Code::kInvalidProgram);
  return verified.status().message();
}

// The same of sum_model after `edit`.
inline std::string refusal(const Edit& edit, ProgramBuilder builder = sum_model()) {
  builder.tokenizer = "{}";
  builder.chat_template = "{{ messages }}";
  Bytes file = builder.build();
  fb::ProgramT program = std::move(builder.program);
  const size_t first_segment = program.segments[0]->offset;
  edit(program);
  if (!replace_program(file, pack(program), first_segment)) return "the edited program is too long for the test";
  return refusal_of(file);
}

inline void expect_refused(const Edit& edit, const std::string& message, ProgramBuilder builder = sum_model()) {
  const std::string got = refusal(edit, std::move(builder));
  EXPECT_NE(got.find("test.mote: " + message), std::string::npos) << "expected: " << message << "\n     got: " << got;
}

}  // namespace mote::test
