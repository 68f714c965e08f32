// How products of codes are computed on a device: by which of the shaders that give the same bits, and how rows and
// tokens are divided among invocations.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "backends/gpu/features.h"
#include "backends/vulkan/shaders.h"

namespace mote::vulkan {

// The features that have shaders of their own.
constexpr gpu::GpuFeatures product_features() {
  return gpu::GpuFeatures(gpu::GpuFeature::kDot) | gpu::GpuFeature::kSubgroups | gpu::GpuFeature::kStaging;
}

// product.glsl: BLOCKS, SPLITS, TOKENS, STAGE.
struct ProductForm {
  gpu::GpuFeatures uses{};
  uint32_t blocks = 4, splits = 4, tokens = 8, stage = 1;

  bool operator==(const ProductForm&) const = default;
  uint32_t invocations() const { return 4 * blocks * splits; }
};

// Of calls with one token, and with several; both or none of a call's products take codes as integer dot products do.
struct ProductForms {
  ProductForm one{}, many{};

  bool operator==(const ProductForms&) const = default;
};

// What is expected to be fast where nothing was measured. is_cpu: the CPU imitates the device
ProductForms usual_forms(gpu::GpuFeatures features, bool is_cpu);
// The same with shaders that use these features wherever they can.
ProductForms forms_that_use(gpu::GpuFeatures features, bool is_cpu);
// The form without the features that are not in `allowed`, as far as it is another then.
ProductForms without_others(const ProductForms& forms, gpu::GpuFeatures allowed, bool is_cpu);

// What MOTE_VULKAN_PRODUCTS says of the features that products use; nothing: it is not set. Errors: kInvalidArgument
// naming what would be accepted, or what the device has not.
Result<std::optional<gpu::GpuFeatures>> forced_product_features(gpu::GpuFeatures of_device);

// The form for rows of a weight of so many bits within the limits of a device: no more tokens than there are rows, and
// no staging where they are too few for it.
ProductForm fitted(ProductForm form, uint32_t bits, int64_t rows, const VkPhysicalDeviceLimits& limits, bool is_cpu);
// Of shared memory.
int64_t shared_bytes_of(const ProductForm& form, uint32_t bits);
Shader product_shader(const ProductForm& form);
// Whose last workgroup rounds the row: of a form that stages nothing.
Shader rounding_product_shader(const ProductForm& form);
Shader group_product_shader(const ProductForm& form, bool rounds);

// "dot+staging 4x4x8x1": features, blocks, splits, tokens, stage.
std::string form_text(const ProductForm& form);
// Nothing: the text is not what form_text gives, or no device runs such a form.
std::optional<ProductForm> parse_product_form(std::string_view text);

}  // namespace mote::vulkan
