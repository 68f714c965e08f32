#include "backends/vulkan/shaders.h"

#include "base/crc32.h"

namespace mote::vulkan {
namespace {

// NAME.spv.inc is a list of words that glslc wrote.
#define MOTE_VULKAN_WORDS(name) constexpr uint32_t k_##name[] =
MOTE_VULKAN_WORDS(append)
#include "append.spv.inc"
    ;
MOTE_VULKAN_WORDS(attend)
#include "attend.spv.inc"
    ;
MOTE_VULKAN_WORDS(attend_tile)
#include "attend_tile.spv.inc"
    ;
MOTE_VULKAN_WORDS(chain)
#include "chain.spv.inc"
    ;
MOTE_VULKAN_WORDS(chain_rounds)
#include "chain_rounds.spv.inc"
    ;
MOTE_VULKAN_WORDS(embedding)
#include "embedding.spv.inc"
    ;
MOTE_VULKAN_WORDS(firsts)
#include "firsts.spv.inc"
    ;
MOTE_VULKAN_WORDS(float_product)
#include "float_product.spv.inc"
    ;
MOTE_VULKAN_WORDS(float_product_chain)
#include "float_product_chain.spv.inc"
    ;
MOTE_VULKAN_WORDS(float_product_rounds)
#include "float_product_rounds.spv.inc"
    ;
MOTE_VULKAN_WORDS(group_product)
#include "group_product.spv.inc"
    ;
MOTE_VULKAN_WORDS(group_product_dot)
#include "group_product_dot.spv.inc"
    ;
MOTE_VULKAN_WORDS(group_product_dot_rounds)
#include "group_product_dot_rounds.spv.inc"
    ;
MOTE_VULKAN_WORDS(group_product_rounds)
#include "group_product_rounds.spv.inc"
    ;
MOTE_VULKAN_WORDS(heads)
#include "heads.spv.inc"
    ;
MOTE_VULKAN_WORDS(index_choose)
#include "index_choose.spv.inc"
    ;
MOTE_VULKAN_WORDS(index_scores)
#include "index_scores.spv.inc"
    ;
MOTE_VULKAN_WORDS(largest)
#include "largest.spv.inc"
    ;
MOTE_VULKAN_WORDS(latent_heads)
#include "latent_heads.spv.inc"
    ;
MOTE_VULKAN_WORDS(linear_attention)
#include "linear_attention.spv.inc"
    ;
MOTE_VULKAN_WORDS(map)
#include "map.spv.inc"
    ;
MOTE_VULKAN_WORDS(matmul)
#include "matmul.spv.inc"
    ;
MOTE_VULKAN_WORDS(norm)
#include "norm.spv.inc"
    ;
MOTE_VULKAN_WORDS(order_rows)
#include "order_rows.spv.inc"
    ;
MOTE_VULKAN_WORDS(pick)
#include "pick.spv.inc"
    ;
MOTE_VULKAN_WORDS(product)
#include "product.spv.inc"
    ;
MOTE_VULKAN_WORDS(product_rounds)
#include "product_rounds.spv.inc"
    ;
MOTE_VULKAN_WORDS(product_dot)
#include "product_dot.spv.inc"
    ;
MOTE_VULKAN_WORDS(product_dot_rounds)
#include "product_dot_rounds.spv.inc"
    ;
MOTE_VULKAN_WORDS(product_dot_staged)
#include "product_dot_staged.spv.inc"
    ;
MOTE_VULKAN_WORDS(product_dot_subgroups)
#include "product_dot_subgroups.spv.inc"
    ;
MOTE_VULKAN_WORDS(product_dot_subgroups_rounds)
#include "product_dot_subgroups_rounds.spv.inc"
    ;
MOTE_VULKAN_WORDS(product_staged)
#include "product_staged.spv.inc"
    ;
MOTE_VULKAN_WORDS(product_subgroups)
#include "product_subgroups.spv.inc"
    ;
MOTE_VULKAN_WORDS(product_subgroups_rounds)
#include "product_subgroups_rounds.spv.inc"
    ;
MOTE_VULKAN_WORDS(quantize)
#include "quantize.spv.inc"
    ;
MOTE_VULKAN_WORDS(reduce)
#include "reduce.spv.inc"
    ;
MOTE_VULKAN_WORDS(rope)
#include "rope.spv.inc"
    ;
MOTE_VULKAN_WORDS(rope_table)
#include "rope_table.spv.inc"
    ;
MOTE_VULKAN_WORDS(rotate)
#include "rotate.spv.inc"
    ;
MOTE_VULKAN_WORDS(row_sums)
#include "row_sums.spv.inc"
    ;
MOTE_VULKAN_WORDS(scatter)
#include "scatter.spv.inc"
    ;
MOTE_VULKAN_WORDS(short_conv)
#include "short_conv.spv.inc"
    ;
MOTE_VULKAN_WORDS(softmax)
#include "softmax.spv.inc"
    ;
MOTE_VULKAN_WORDS(top)
#include "top.spv.inc"
    ;

}  // namespace

std::span<const uint32_t> spirv(Shader shader) {
  switch (shader) {
#define MOTE_VULKAN_CASE(name) \
  case Shader::name: return k_##name;
    MOTE_VULKAN_SHADERS(MOTE_VULKAN_CASE)
#undef MOTE_VULKAN_CASE
  }
  return {};
}

uint32_t shaders_crc32() {
  uint32_t crc = 0;
#define MOTE_VULKAN_CRC(name) crc = crc32(std::as_bytes(spirv(Shader::name)), crc);
  MOTE_VULKAN_SHADERS(MOTE_VULKAN_CRC)
#undef MOTE_VULKAN_CRC
  return crc;
}

const char* shader_name(Shader shader) { return profile_name(shader) + sizeof("vulkan.") - 1; }

const char* profile_name(Shader shader) {
  switch (shader) {
#define MOTE_VULKAN_CASE(name) \
  case Shader::name: return "vulkan." #name;
    MOTE_VULKAN_SHADERS(MOTE_VULKAN_CASE)
#undef MOTE_VULKAN_CASE
  }
  return "vulkan.";
}

}  // namespace mote::vulkan
