// A build that has XNNPACK in it looks for no other.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/xnnpack/library.h"

namespace mote::xnnpack::test {
namespace {

TEST(XnnpackLinked, is_there_whatever_the_environment_names) {
  ::setenv("MOTE_XNNPACK_LIBRARY", "/nowhere/libXNNPACK.so", 1);
  EXPECT_EQ(find_functions()->library, "the XNNPACK of this build");
  const Result<const Api*> found = library();
  ASSERT_TRUE(found.ok()) << found.status().message();
}

}  // namespace
}  // namespace mote::xnnpack::test
