#include "backends/gpu/features.h"

#include <gtest/gtest.h>

namespace mote::gpu::test {
namespace {

void expect_refused(const Status& status, const std::string& begin, const std::string& names) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(Code::kInvalidArgument, status.code());
  EXPECT_EQ(0u, status.message().find(begin)) << status.message();
  EXPECT_NE(std::string::npos, status.message().find(names)) << status.message();
}

TEST(GpuFeatures, names_are_read_and_printed) {
  EXPECT_EQ(GpuFeatures(), *parse_gpu_features(""));
  EXPECT_EQ(GpuFeatures(), *parse_gpu_features("none"));
  EXPECT_EQ("none", to_string(GpuFeatures()));
  EXPECT_EQ("subgroups+dot", to_string(*parse_gpu_features("dot,subgroups")));
  const GpuFeatures all = *parse_gpu_features("subgroups,dot,float16,int8,storage16,storage8");
  EXPECT_EQ(all, *parse_gpu_features(to_string(all)));
  EXPECT_TRUE(all.has(GpuFeature::kInt8));
  EXPECT_FALSE(all.without(GpuFeature::kInt8).has(GpuFeature::kInt8));
}

TEST(GpuFeatures, what_is_no_feature_is_refused_with_the_names_that_are) {
  for (const char* text : {"fp16", "dot,avx", "DOT", " dot", "dot,,int8", ","}) {
    SCOPED_TRACE(text);
    expect_refused(parse_gpu_features(text).status(), "MOTE_GPU_FEATURES holds '", "none, subgroups, dot, float16");
  }
}

TEST(GpuLimits, are_lowered_and_never_raised) {
  GpuLimits limits{};
  limits.maxComputeSharedMemorySize = 49152;
  limits.maxComputeWorkGroupInvocations = 1024;
  limits.maxStorageBufferRange = 1 << 20;
  limits.maxPerStageDescriptorStorageBuffers = 35;
  for (uint32_t& size : limits.maxComputeWorkGroupSize) size = 256;
  ASSERT_TRUE(
      apply_gpu_limits(
          "shared_memory=16384,invocations=128,storage_range=4294967295,submission_us=500,storage_buffers=4", &limits)
          .ok());
  EXPECT_EQ(16384u, limits.maxComputeSharedMemorySize);
  EXPECT_EQ(128u, limits.maxComputeWorkGroupInvocations);
  EXPECT_EQ(128u, limits.maxComputeWorkGroupSize[0]);
  EXPECT_EQ(1u << 20, limits.maxStorageBufferRange);
  EXPECT_EQ(500u, limits.submission_us);
  EXPECT_EQ(4u, limits.maxPerStageDescriptorStorageBuffers);
}

TEST(GpuLimits, what_is_no_limit_is_refused_with_the_names_that_are) {
  GpuLimits limits{};
  for (const char* text : {"memory=1", "invocations", "invocations=", "invocations=many", "invocations=-1",
                           "invocations=4294967296", "invocations=1,,"}) {
    SCOPED_TRACE(text);
    expect_refused(apply_gpu_limits(text, &limits), "MOTE_GPU_LIMITS holds '",
                   "shared_memory, invocations, storage_range, storage_buffers, submission_us");
  }
}

}  // namespace
}  // namespace mote::gpu::test
