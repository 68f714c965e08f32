#include "backends/vulkan/verdict.h"

#include <array>
#include <charconv>
#include <map>
#include <mutex>

#include "backends/vulkan/shaders.h"
#include "base/log.h"

namespace mote::vulkan {
namespace {

constexpr std::array<std::string_view, 4> kStates = {"unknown", "trying", "works", "fails"};
constexpr uint64_t kMostVerdict = 4096;  // bytes

// Of this process, by identity.
struct Known {
  std::mutex mutex;
  std::map<std::string, Verdict> verdicts;
};
Known& known() {
  static Known made;
  return made;
}

std::string milliseconds(uint64_t ns) { return format("%.1f ms", static_cast<double>(ns) * 1e-6); }

KeptFile kept(const TriedDevice& device, const DelegateSource& source, const char* what) {
  KeptFile file;
  if (!source.cache_prefix.empty()) file.path = source.cache_prefix + ".vulkan-" + what;
  file.identity = std::string("vulkan ") + what + "; " + device.identity + format("; %08x", shaders_crc32());
  file.also_trusted = source.file_owner;
  return file;
}

template <typename Number> bool take_number(std::string_view* text, Number* number) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  if (error != std::errc()) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  const bool is_delimited = !text->empty() && (text->front() == ' ' || text->front() == '\n');
  if (is_delimited) text->remove_prefix(1);
  return is_delimited;
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

std::string Verdict::why_slower(const std::string& device) const {
  if (is_faster()) return {};
  if (gpu_ns == 0 || cpu_ns == 0) return device + " is not known to be faster than the CPU for this file";
  return device + " takes " + milliseconds(gpu_ns) + " a token and the CPU " + milliseconds(cpu_ns) +
         ", as was measured when the file was loaded first";
}

std::string Verdict::text_for(const std::string& device) const {
  if (state != State::works) return {};
  std::string text = device + ", tried with this file";
  if (gpu_ns > 0) text += ": " + milliseconds(gpu_ns) + " a token";
  if (set_aside != 0) text += "; set aside: " + to_string(features_set_aside());
  if (products)
    text += "; products of a token: " + form_text(products->one) + ", of prompts: " + form_text(products->many);
  return text;
}

std::string to_text(const Verdict& verdict) {
  const std::string forms =
      verdict.products ? form_text(verdict.products->one) + "; " + form_text(verdict.products->many) : std::string();
  return std::string(kStates[static_cast<size_t>(verdict.state)]) +
         format(" %u %u %u %llu %llu\n", verdict.num_begun, verdict.set_aside, verdict.trying,
                static_cast<unsigned long long>(verdict.gpu_ns), static_cast<unsigned long long>(verdict.cpu_ns)) +
         forms + "\n" + verdict.reason;
}

std::optional<Verdict> parse_verdict(std::string_view text) {
  Verdict verdict;
  const size_t length = std::min(text.find(' '), text.size());
  size_t state = 0;
  while (state < kStates.size() && kStates[state] != text.substr(0, length)) ++state;
  if (state == kStates.size() || length == text.size()) return std::nullopt;
  verdict.state = static_cast<Verdict::State>(state);
  text.remove_prefix(length + 1);
  const bool has_numbers = take_number(&text, &verdict.num_begun) && take_number(&text, &verdict.set_aside) &&
                           take_number(&text, &verdict.trying) && take_number(&text, &verdict.gpu_ns) &&
                           take_number(&text, &verdict.cpu_ns);
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
  {
    const std::lock_guard lock(known().mutex);
    if (const auto found = known().verdicts.find(file.identity); found != known().verdicts.end()) return found->second;
  }
  if (file.path.empty()) return {};
  const Result<std::vector<std::byte>> bytes = file.read(kMostVerdict);
  if (!bytes.ok()) {
    if (bytes.status().code() != Code::kFileNotFound)
      MOTE_LOG_LINE(kInfo, "vulkan: the device is tried anew: %s", bytes.status().message().c_str());
    return {};
  }
  return parse_verdict({reinterpret_cast<const char*>(bytes->data()), bytes->size()}).value_or(Verdict());
}

void keep_verdict(const KeptFile& file, const Verdict& verdict) {
  if (verdict.state == Verdict::State::works || verdict.state == Verdict::State::fails) {
    const std::lock_guard lock(known().mutex);
    known().verdicts[file.identity] = verdict;
  }
  if (file.path.empty()) return;
  std::string text = to_text(verdict);
  text.resize(std::min<size_t>(text.size(), kMostVerdict));
  const Status written = file.write(std::as_bytes(std::span(text)));
  if (!written.ok()) MOTE_LOG_LINE(kInfo, "vulkan: the verdict is not kept: %s", written.message().c_str());
}

}  // namespace mote::vulkan
