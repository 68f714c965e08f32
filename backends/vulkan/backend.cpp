#include <mutex>
#include <new>
#include <optional>
#include <string>

#include "backends/vulkan/proof.h"
#include "backends/vulkan/trials.h"
#include "base/log.h"

namespace mote::vulkan {
namespace {

// Of this process: to open a device takes a driver long, and each load asks for it.
Result<TriedDevice> device() {
  static std::mutex mutex;
  static std::optional<TriedDevice> known;
  const std::lock_guard lock(mutex);
  if (!known) {
    MOTE_ASSIGN(const auto context, gpu::GpuContext::open());
    known = TriedDevice::of(*context);
  }
  return *known;
}

// How long an attempt may take. What the CPU imitates is slow.
std::chrono::seconds patience_of(const TriedDevice& device) { return std::chrono::seconds(device.is_cpu ? 600 : 10); }

// Errors: kUnsupportedBackend where the device was tried with these parts and failed.
Status check_verdict(const Verdict& verdict, const KeptFile& file, const TriedDevice& device) {
  return proof::check_tried(verdict.state, verdict.num_begun, verdict.reason, file, device.name);
}

// Why a file that can run on the CPU should; empty: the device is faster, or has not been tried.
std::string why_the_cpu(const TriedDevice& device, const Verdict& verdict, const KeptFile& file) {
  if (const Status status = check_verdict(verdict, file, device); !status.ok()) return status.message();
  if (device.is_cpu) return device.name + " is no GPU: it computes on the CPU";
  return verdict.state == Verdict::State::works ? verdict.why_slower(device.name) : std::string();
}

// What a verdict says of the features that are used, and of how products are computed.
void apply(const Verdict& verdict, const TriedDevice& device, Program* program) {
  program->set_tuned(verdict.products);
  program->set_features(device.features.without(verdict.features_set_aside()));
}

constexpr std::chrono::milliseconds kToTune{200};
constexpr std::chrono::hours kToTuneFully{1};

// Tries the variants of products one by one, and finds the fastest. unknown: one of them took the device with it, and
// is set aside from now on.
Verdict choose_products(const std::shared_ptr<Program>& program, const DelegateSource& source, const KeptFile& file,
                        const TriedDevice& device, const Verdict& before) {
  Verdict verdict = before;
  const Result<std::shared_ptr<ProductTrials>> trials = ProductTrials::make(program);
  if (!trials.ok()) return verdict;
  const auto compare = [all = *trials, of_file = source.file](gpu::GpuFeatures features) {
    return all->compare(features);
  };
  const auto begins = [&](gpu::GpuFeatures variant) {
    Verdict trying = before;
    trying.state = Verdict::State::trying;
    trying.num_begun = before.num_begun + 1;
    trying.trying = variant.bits();
    keep_verdict(file, trying);
  };
  const gpu::GpuFeatures features = device.features.without(verdict.features_set_aside());
  const Compared compared =
      compare_variants(features, patience_of(device), compare, begins, [&] { return program->is_lost(); });
  verdict.set_aside |= compared.set_aside.bits();
  if (compared.is_gone) {
    verdict.state = verdict.set_aside == before.set_aside ? Verdict::State::fails : Verdict::State::unknown;
    verdict.reason = compared.reason;
    program->context()->abandon();
    return verdict;
  }
  begins({});
  // What is fast on a device that the CPU imitates was measured before, and takes longer to find out.
  if ((device.is_cpu && !source.tune) || program->forces_products()) return verdict;
  const Result<ProductForms> forms = (*trials)->tune(features.without(compared.set_aside),
                                                     source.tune ? std::chrono::nanoseconds(kToTuneFully) : kToTune);
  if (forms.ok()) verdict.products = *forms;
  return verdict;
}

// Proves the program on its device, unless that was done.
Result<Verdict> proved(const std::shared_ptr<Program>& program, const DelegateSource& source, const KeptFile& file,
                       const TriedDevice& device, const Verdict& before) {
  if (before.state == Verdict::State::works && !source.tune) {
    apply(before, device, program.get());
    MOTE_RETURN_IF_ERROR(program->make_pipelines());
    return before;
  }
  Verdict chosen = before;
  if (before.num_begun == 0) chosen = choose_products(program, source, file, device, before);
  if (program->is_lost()) {
    keep_verdict(file, chosen);
    return chosen;
  }
  apply(chosen, device, program.get());
  const gpu::GpuFeatures features = device.features.without(chosen.features_set_aside());
  Verdict verdict = prove(features, before.num_begun > 0, patience_of(device), attempt_of(program, source));
  verdict.set_aside |= chosen.set_aside;
  verdict.products = chosen.products;
  if (verdict.state == Verdict::State::unknown) return Status(Code::kOutOfMemory, verdict.reason);
  if (verdict.state == Verdict::State::works) verdict.cpu_ns = cpu_ns_of(*program, source);
  keep_verdict(file, verdict);
  MOTE_RETURN_IF_ERROR(check_verdict(verdict, file, device));
  MOTE_LOG_LINE(kInfo, "vulkan: %s was tried with this file: set aside %s; %.1f ms a token, the CPU %.1f ms",
                device.name.c_str(), to_string(verdict.features_set_aside()).c_str(),
                static_cast<double>(verdict.gpu_ns) * 1e-6, static_cast<double>(verdict.cpu_ns) * 1e-6);
  return verdict;
}

class VulkanBackend : public Backend {
 public:
  std::string_view name() const override { return "vulkan"; }

  Status check_device() const override try { return device().status(); } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, "no memory for Vulkan"};
  }

  std::string why_not(const DelegateSource& source) const override try {
    const Result<TriedDevice> found = device();
    if (!found.ok()) return found.status().message();
    const KeptFile file = verdict_of(*found, source);
    return why_the_cpu(*found, read_verdict(file), file);
  } catch (const std::bad_alloc&) { return "no memory for Vulkan"; }

  std::string findings(const DelegateSource& source) const override try {
    const Result<TriedDevice> found = device();
    return found.ok() ? read_verdict(verdict_of(*found, source)).text_for(found->name) : std::string();
  } catch (const std::bad_alloc&) { return {}; }

  Status check(const DelegateSource& source) const override try {
    for (const DelegatePart& part : source.parts) MOTE_RETURN_IF_ERROR(verify_graph(part).status());
    MOTE_ASSIGN(const TriedDevice found, device());
    const KeptFile file = verdict_of(found, source);
    return check_verdict(read_verdict(file), file, found);
  } catch (const std::bad_alloc&) { return no_memory(source); }

  Result<std::shared_ptr<const DelegateProgram>> load(DelegateSource source) const override try {
    // A variant that takes the device with it is set aside, and another device is opened; there are few variants.
    for (;;) {
      Verdict before, after;
      Result<std::shared_ptr<const DelegateProgram>> loaded = load_once(source, &before, &after);
      if (loaded.ok() || after.state != Verdict::State::unknown || after.set_aside == before.set_aside) return loaded;
    }
  } catch (const std::bad_alloc&) { return no_memory(source); }

 private:
  static Result<std::shared_ptr<const DelegateProgram>> load_once(const DelegateSource& source, Verdict* before,
                                                                  Verdict* after) {
    MOTE_ASSIGN(std::shared_ptr<const gpu::GpuContext> context, gpu::GpuContext::open());
    const TriedDevice device = TriedDevice::of(*context);
    const KeptFile file = verdict_of(device, source);
    *before = *after = read_verdict(file).after_a_death();
    MOTE_RETURN_IF_ERROR(check_verdict(*before, file, device));
    Verdict begun = *before;
    begun.state = Verdict::State::trying;
    begun.num_begun = before->num_begun + 1;
    if (before->state != Verdict::State::works) keep_verdict(file, begun);
    Result<std::shared_ptr<const DelegateProgram>> loaded = load(std::move(context), source, file, *before, after);
    const bool is_settled = read_verdict(file).state != Verdict::State::trying;
    if (!loaded.ok() && !is_settled) keep_verdict(file, *after);  // it came to an end, whatever the error
    return loaded;
  }

  static Result<std::shared_ptr<const DelegateProgram>> load(std::shared_ptr<const gpu::GpuContext> context,
                                                             const DelegateSource& source, const KeptFile& file,
                                                             const Verdict& before, Verdict* after) {
    const TriedDevice device = TriedDevice::of(*context);
    MOTE_ASSIGN(const std::shared_ptr<Program> program,
                Program::load(std::move(context), pipelines_of(device, source), source));
    MOTE_ASSIGN(*after, proved(program, source, file, device, before));
    MOTE_REQUIRE(after->state == Verdict::State::works, Code::kUnsupportedBackend, "%s: %s", device.name.c_str(),
                 after->reason.c_str());
    Pipelines& pipelines = program->pipelines();
    pipelines.keep();
    program->weights().keep_sums();
    pipelines.begin_calls();
    MOTE_LOG_LINE(kInfo, "vulkan: %zu pipelines, %s of them found", pipelines.num_made(),
                  pipelines.num_found() ? std::to_string(*pipelines.num_found()).c_str() : "an unknown number");
    const std::string slower = source.is_choice ? why_the_cpu(device, *after, file) : "";
    MOTE_REQUIRE(slower.empty(), Code::kUnsupportedBackend, "%s", slower.c_str());
    return std::shared_ptr<const DelegateProgram>(program);
  }

  static Status no_memory(const DelegateSource& source) {
    return {Code::kOutOfMemory, source.parts.front().place + ": no memory for the parts that a GPU runs"};
  }
};

const VulkanBackend backend;
const BackendRegistration registration(&backend);

}  // namespace
}  // namespace mote::vulkan
