#include "backends/vulkan/variants.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdlib>

namespace mote::vulkan {
namespace {

using gpu::GpuFeature;
using gpu::GpuFeatures;

constexpr uint32_t kMostTokens = 16, kMostStage = 8, kMostBlocks = 64, kMostSplits = 64;
constexpr int64_t kLeastStaged = 8;  // rows: fewer have nothing to share

// What a form for one token or for several can use of the features.
GpuFeatures useful(GpuFeatures features, bool is_of_many) {
  GpuFeatures uses = features & product_features();
  if (!is_of_many) return uses.without(GpuFeature::kStaging);
  return uses.has(GpuFeature::kStaging) ? uses.without(GpuFeature::kSubgroups) : uses;
}

// A device that the CPU imitates has few lanes and no use for many invocations, which wait for each other at a cost.
ProductForm form_of(GpuFeatures uses, bool is_cpu) {
  if (uses.has(GpuFeature::kStaging)) return {uses, is_cpu ? 2u : 4u, is_cpu ? 1u : 4u, 8, is_cpu ? 4u : 1u};
  if (uses.has(GpuFeature::kSubgroups)) return {uses, is_cpu ? 1u : 4u, is_cpu ? 2u : 4u, 8, 1};
  return {uses, is_cpu ? 2u : 4u, is_cpu ? 1u : 4u, 8, 1};
}

uint64_t shared_bytes(const ProductForm& form, uint32_t bits) {
  if (!form.uses.has(GpuFeature::kStaging)) { return form.splits == 1 ? 16 : 16ull * form.invocations() * form.tokens; }
  const uint64_t tokens = uint64_t{form.tokens} * form.splits, octet = form.uses.has(GpuFeature::kDot) ? 8 : 16;
  return form.stage * (uint64_t{form.blocks} * 4 * bits * 16 + tokens * (4 * octet + 4));
}

bool halve(uint32_t* number) {
  const bool can = *number > 1;
  if (can) *number /= 2;
  return can;
}

}  // namespace

ProductForms forms_that_use(GpuFeatures features, bool is_cpu) {
  return {form_of(useful(features, false), is_cpu), form_of(useful(features, true), is_cpu)};
}

ProductForms usual_forms(GpuFeatures features, bool is_cpu) {
  return forms_that_use(is_cpu ? GpuFeatures() : features, is_cpu);
}

ProductForms without_others(const ProductForms& forms, GpuFeatures allowed, bool is_cpu) {
  const auto reduced = [&](const ProductForm& form, bool is_of_many) {
    const GpuFeatures uses = useful(form.uses & allowed, is_of_many);
    return uses == form.uses ? form : form_of(uses, is_cpu);
  };
  return {reduced(forms.one, false), reduced(forms.many, true)};
}

Result<std::optional<GpuFeatures>> forced_product_features(GpuFeatures of_device) {
  constexpr const char* kName = "MOTE_VULKAN_PRODUCTS";
  const char* text = std::getenv(kName);
  if (text == nullptr) return std::optional<GpuFeatures>();
  MOTE_ASSIGN(const GpuFeatures features, gpu::parse_gpu_features(text, kName, product_features()));
  MOTE_REQUIRE(features.without(of_device).bits() == 0, Code::kInvalidArgument,
               "%s asks for %s: the GPU has %s, or is allowed no more", kName, to_string(features).c_str(),
               to_string(of_device).c_str());
  return std::optional(features);
}

ProductForm fitted(ProductForm form, uint32_t bits, int64_t rows, const VkPhysicalDeviceLimits& limits, bool is_cpu) {
  if (rows < kLeastStaged) form = without_others({{}, form}, form.uses.without(GpuFeature::kStaging), is_cpu).many;
  while (form.tokens > rows && halve(&form.tokens)) {}
  // Of tokens that are staged no more than there are.
  while (form.uses.has(GpuFeature::kStaging) && int64_t{form.tokens} * form.splits >= 2 * rows && halve(&form.splits)) {
  }
  const uint32_t most = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  while (form.invocations() > most && (halve(&form.splits) || halve(&form.blocks))) {}
  while (shared_bytes(form, bits) > limits.maxComputeSharedMemorySize &&
         (halve(&form.stage) || halve(&form.splits) || halve(&form.blocks))) {}
  return form;
}

Shader product_shader(const ProductForm& form) {
  const bool has_dot = form.uses.has(GpuFeature::kDot);
  if (form.uses.has(GpuFeature::kStaging)) return has_dot ? Shader::product_dot_staged : Shader::product_staged;
  if (form.uses.has(GpuFeature::kSubgroups) && form.splits > 1)
    return has_dot ? Shader::product_dot_subgroups : Shader::product_subgroups;
  return has_dot ? Shader::product_dot : Shader::product;
}

Shader rounding_product_shader(const ProductForm& form) {
  switch (product_shader(form)) {
    case Shader::product_dot: return Shader::product_dot_rounds;
    case Shader::product_subgroups: return Shader::product_subgroups_rounds;
    case Shader::product_dot_subgroups: return Shader::product_dot_subgroups_rounds;
    default: return Shader::product_rounds;
  }
}

int64_t shared_bytes_of(const ProductForm& form, uint32_t bits) {
  return static_cast<int64_t>(shared_bytes(form, bits));
}

Shader group_product_shader(const ProductForm& form, bool rounds) {
  if (form.uses.has(GpuFeature::kDot)) return rounds ? Shader::group_product_dot_rounds : Shader::group_product_dot;
  return rounds ? Shader::group_product_rounds : Shader::group_product;
}

std::string form_text(const ProductForm& form) {
  std::string text = to_string(form.uses);
  for (const uint32_t each : {form.blocks, form.splits, form.tokens, form.stage})
    text += (text.find(' ') == std::string::npos ? " " : "x") + std::to_string(each);
  return text;
}

std::optional<ProductForm> parse_product_form(std::string_view text) {
  const size_t space = std::min(text.find(' '), text.size());
  const Result<GpuFeatures> uses = gpu::parse_gpu_features(text.substr(0, space), "it", product_features());
  if (!uses.ok() || space == text.size()) return std::nullopt;
  text.remove_prefix(space + 1);
  std::array<uint32_t, 4> numbers{};
  for (uint32_t& number : numbers) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || !std::has_single_bit(number)) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    const bool is_last = &number == &numbers.back();
    if (is_last != text.empty() || (!is_last && text.front() != 'x')) return std::nullopt;
    if (!is_last) text.remove_prefix(1);
  }
  const ProductForm form{*uses, numbers[0], numbers[1], numbers[2], numbers[3]};
  const bool is_known = form.blocks <= kMostBlocks && form.splits <= kMostSplits && form.tokens <= kMostTokens &&
                        form.stage <= kMostStage;
  return is_known ? std::optional(form) : std::nullopt;
}

}  // namespace mote::vulkan
