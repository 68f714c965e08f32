// A build in which an op and a kernel came twice, as when a backend or an application adds one of a name that is taken.
#include <gtest/gtest.h>

#include "kernels/kernel.h"
#include "runner/program/program.h"
#include "tests/runner/program/tiny_model.h"

namespace mote {
namespace {

Status check_any(Call&) { return {}; }
Status run_nothing(const Call&, KernelContext&) { return {}; }

MOTE_REGISTER_OP(.name = "test.twice", .check = check_any, .run = run_nothing);
MOTE_REGISTER_OP(.name = "test.twice", .check = check_any, .run = run_nothing);
MOTE_REGISTER_KERNEL(.name = "test_twice", .role = "test.one");
MOTE_REGISTER_KERNEL(.name = "test_twice", .role = "test.other");

Result<std::shared_ptr<const Bound>> bind_tiny_model() {
  MOTE_ASSIGN(Mapped mapped, map_bytes("test.mote", test::tiny_model().build()));
  MOTE_ASSIGN(Verified verified, verify(std::move(mapped)));
  return bind(std::move(verified));
}

TEST(RegisteredTwice, bind_refuses_any_program) {
  const Status status = bind_tiny_model().status();
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_EQ(status.message(), "this build registers the op 'test.twice' twice: a name must be one op's");
}

TEST(RegisteredTwice, no_kernel_is_chosen) {
  const auto kernel = select_kernel("test.one", {}, 1);
  EXPECT_EQ(kernel.status().code(), Code::kInternal);
  EXPECT_EQ(kernel.status().message(),
            "this build registers the kernel 'test_twice' twice: a name must be one kernel's");
}

}  // namespace
}  // namespace mote
