#include "backends/vulkan/verdict.h"

#include "backends/vulkan/shaders.h"

namespace mote::vulkan {
namespace {

KeptFile kept(const TriedDevice& device, const DelegateSource& source, const char* what) {
  KeptFile file;
  if (!source.cache_prefix.empty()) file.path = source.cache_prefix + ".vulkan-" + what;
  file.identity = std::string("vulkan ") + what + "; " + device.identity + format("; %08x", shaders_crc32());
  file.also_trusted = source.file_owner;
  return file;
}

}  // namespace

gpu::GpuFeatures Verdict::features_set_aside() const { return gpu::GpuFeatures::of_bits(set_aside); }

Verdict Verdict::after_a_death() const {
  Verdict verdict = *this;
  if (state != State::trying || trying == 0) return verdict;
  verdict.set_aside |= trying;
  verdict.state = State::unknown;
  verdict.trying = verdict.num_begun = 0;
  return verdict;
}

std::string Verdict::text_for(const std::string& device) const {
  if (state != State::works) return {};
  std::string text = device + ", tried with this file";
  if (gpu_ns > 0) text += ": " + proof::milliseconds(gpu_ns) + " a token";
  if (set_aside != 0) text += "; set aside: " + to_string(features_set_aside());
  if (products)
    text += "; products of a token: " + form_text(products->one) + ", of prompts: " + form_text(products->many);
  return text;
}

std::string to_text(const Verdict& verdict) {
  const std::string forms =
      verdict.products ? form_text(verdict.products->one) + "; " + form_text(verdict.products->many) : std::string();
  return std::string(proof::name_of(verdict.state)) +
         format(" %u %u %u %llu %llu\n", verdict.num_begun, verdict.set_aside, verdict.trying,
                static_cast<unsigned long long>(verdict.gpu_ns), static_cast<unsigned long long>(verdict.cpu_ns)) +
         forms + "\n" + verdict.reason;
}

std::optional<Verdict> parse_verdict(std::string_view text) {
  Verdict verdict;
  const std::optional<proof::State> state = proof::take_state(&text);
  if (!state) return std::nullopt;
  verdict.state = *state;
  const bool has_numbers = proof::take_number(&text, &verdict.num_begun) &&
                           proof::take_number(&text, &verdict.set_aside) &&
                           proof::take_number(&text, &verdict.trying) && proof::take_number(&text, &verdict.gpu_ns) &&
                           proof::take_number(&text, &verdict.cpu_ns);
  const size_t end = text.find('\n');
  if (!has_numbers || end == std::string_view::npos) return std::nullopt;
  const std::string_view forms = text.substr(0, end);
  text.remove_prefix(end + 1);
  if (!forms.empty()) {
    const size_t semicolon = forms.find("; ");
    if (semicolon == std::string_view::npos) return std::nullopt;
    const auto one = parse_product_form(forms.substr(0, semicolon));
    const auto many = parse_product_form(forms.substr(semicolon + 2));
    if (!one || !many) return std::nullopt;
    verdict.products = {*one, *many};
  }
  verdict.reason = text;
  return verdict;
}

TriedDevice TriedDevice::of(const gpu::GpuContext& context) {
  return {context.device_name(), context.identity(), context.features(), context.limits(), context.is_cpu()};
}

KeptFile pipelines_of(const TriedDevice& device, const DelegateSource& source) {
  return kept(device, source, "pipelines");
}

KeptFile row_sums_of(const TriedDevice& device, const DelegateSource& source) {
  KeptFile file = kept(device, source, "row-sums");
  file.identity += format("; %08x %llu", source.program_crc32, static_cast<unsigned long long>(source.file_bytes));
  return file;
}

KeptFile verdict_of(const TriedDevice& device, const DelegateSource& source) {
  KeptFile file = kept(device, source, "verdict");
  const VkPhysicalDeviceLimits& limits = device.limits;
  file.identity +=
      "; " + to_string(device.features) +
      format("; %u %u %u; %08x %llu", limits.maxComputeSharedMemorySize, limits.maxComputeWorkGroupInvocations,
             limits.maxStorageBufferRange, source.program_crc32, static_cast<unsigned long long>(source.file_bytes));
  return file;
}

Verdict read_verdict(const KeptFile& file) {
  return parse_verdict(proof::read_text(file, "vulkan").value_or("")).value_or(Verdict());
}

void keep_verdict(const KeptFile& file, const Verdict& verdict) {
  const bool is_settled = verdict.state == Verdict::State::works || verdict.state == Verdict::State::fails;
  proof::keep_text(file, to_text(verdict), is_settled, "vulkan");
}

}  // namespace mote::vulkan
