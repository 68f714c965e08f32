// The compute shaders of this backend as SPIR-V, one for each file in shaders/.
#pragma once

#include <cstdint>
#include <span>

namespace mote::vulkan {

// clang-format off
#define MOTE_VULKAN_SHADERS(X) \
  X(append) X(attend) X(attend_tile) X(chain) X(chain_rounds) X(embedding) X(firsts) X(float_product) X(float_product_chain) X(float_product_rounds) X(group_product) \
  X(group_product_dot) X(group_product_dot_rounds) X(group_product_rounds) X(heads) X(index_choose) X(index_scores) \
  X(largest) X(latent_heads) X(linear_attention) X(map) X(matmul) X(norm) X(order_rows) X(pick) X(product) X(product_dot) X(product_dot_rounds) \
  X(product_dot_staged) X(product_dot_subgroups) X(product_dot_subgroups_rounds) X(product_rounds) X(product_staged) \
  X(product_subgroups) X(product_subgroups_rounds) X(quantize) X(reduce) X(rope) X(rope_table) X(rotate) \
  X(row_sums) X(scatter) X(short_conv) X(softmax) X(top)
// clang-format on

enum class Shader : uint8_t {
#define MOTE_VULKAN_NAME(name) name,
  MOTE_VULKAN_SHADERS(MOTE_VULKAN_NAME)
#undef MOTE_VULKAN_NAME
};

std::span<const uint32_t> spirv(Shader shader);
const char* shader_name(Shader shader);
// Changes with any of them.
uint32_t shaders_crc32();
// As profiles name it: "vulkan.product".
const char* profile_name(Shader shader);

}  // namespace mote::vulkan
