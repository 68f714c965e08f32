// run_faults FILE [MOST]: loads a file with the targets vulkan and cpu and generates with it, while each function of
// Vulkan fails at its first, second, ... call, MOST of them (all: every call of a run without faults), on a device that
// was tried with the file before. Whatever fails,
// the process lives, loading says in one sentence what is wrong or succeeds, the text is that of the CPU, no object of
// Vulkan is left behind, and the device is used again afterwards. Prints what came of each fault, and how many came.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runner/session/session.h"
#include "tests/backends/scenario.h"
#include "tests/backends/vulkan/faults.h"

namespace mote::test {
namespace {

constexpr int kGenerated = 6;

struct Text {
  std::vector<int32_t> ids;
  std::string backend, moved_because;
  std::string error{};  // of loading
  bool has_struck = false;

  std::string what() const { return error.empty() ? backend + ": " + moved_because : "not loaded: " + error; }
};

class Faults {
 public:
  Faults(std::string path, int64_t most) : path_(std::move(path)), most_(most) {}

  int64_t all() {
    auto on_cpu = load("cpu");
    if (!on_cpu.ok()) fail(on_cpu.status().message());
    expected_ = generate(*on_cpu, "without faults");
    install_faults();
    // The first load tries the device with the file; those that follow trust what it found.
    for (const char* place : {"tried", "without faults"}) {
      disarm();
      const Text text = try_once(place);
      if (text.backend != "vulkan") fail(std::string(place) + ": not on vulkan: " + text.what());
    }
    std::map<std::string, int64_t> counts;
    for (const std::string& name : functions_that_fail()) counts[name] = num_calls(name);
    for (const auto& [name, count] : counts) {
      for (const Fault fault : {Fault::memory, Fault::refusal, Fault::loss, Fault::hang}) {
        if (!makes_sense(name, fault)) continue;
        for (const int64_t k : chosen(count)) strike(name, fault, k);
      }
    }
    return num_struck_;
  }

 private:
  static bool makes_sense(const std::string& name, Fault fault) {
    if (fault == Fault::hang) return name == "WaitForFences";
    if (fault == Fault::loss)
      return !name.starts_with("Enumerate") && name != "CreateInstance" && name != "CreateDevice";
    return fault == Fault::refusal || name != "GetDeviceProcAddr";
  }

  // Which calls fail of so many: the first ones, the last, and some between.
  std::vector<int64_t> chosen(int64_t count) const {
    std::set<int64_t> calls;
    for (int64_t k = 1; k <= count && k <= 2; ++k) calls.insert(k);
    if (count > 0) calls.insert(count);
    for (int64_t i = 1; i <= count && static_cast<int64_t>(calls.size()) < std::min(most_, count); ++i)
      calls.insert(most_ >= count ? i : 1 + i * 7919 % count);
    return {calls.begin(), calls.end()};
  }

  Result<std::shared_ptr<const Model>> load(const char* backend) const {
    return Model::open(Source(path_), {.backend = backend});
  }

  // A prompt in two calls and some tokens; each call must succeed.
  static Text generate(const std::shared_ptr<const Model>& model, const std::string& place) {
    SessionOptions options;
    options.context_length = 64;
    options.prefill_chunk = 8;
    options.threads = 2;
    options.kv_dtype = KvType::kFloat32;
    auto session = Session::open(model, options);
    if (!session.ok()) fail(place + ": opening a session: " + session.status().message());
    Text text;
    std::vector<int32_t> prompt;
    for (int32_t i = 0; i < 13; ++i) prompt.push_back((i * 37 + 11) % model->vocab_size());
    auto logits = (*session)->prefill(prompt);
    for (int i = 0; i < kGenerated; ++i) {
      if (!logits.ok()) fail(place + ": " + logits.status().message());
      const bool has_largest = logits->empty();
      if (has_largest) text.ids.push_back((*session)->largest()[0].index);
      (*session)->want_largest(0);
      if (has_largest && i % 2 == 0) {  // all logits are still to be had, here or from the CPU
        logits = (*session)->logits();
        if (!logits.ok()) fail(place + ": logits: " + logits.status().message());
        if (max_of(*logits) != text.ids.back()) fail(place + ": the largest logit is another");
      }
      if (!has_largest) text.ids.push_back(max_of(*logits));
      (*session)->want_largest(i > 0 ? 1 : 0);
      logits = (*session)->decode(text.ids.back());
    }
    compute_otherwise(**session, place, &text);
    text.backend = (*session)->backend();
    text.moved_because = (*session)->moved_because();
    return text;
  }

  // A fork, ids with all their logits, and their probabilities, in `text` as ids that are the same whoever computes.
  static void compute_otherwise(Session& session, const std::string& place, Text* text) {
    const auto fork = session.fork();
    if (!fork.ok()) fail(place + ": a fork: " + fork.status().message());
    const std::vector<int32_t> ids{text->ids[0], text->ids[1], text->ids[2]};
    const auto width = static_cast<size_t>(session.model().vocab_size());
    std::vector<float> rows(ids.size() * width), logprobs(ids.size() - 1);
    const Status verified = (*fork)->verify(ids, rows.data());
    if (!verified.ok()) fail(place + ": ids with all their logits: " + verified.message());
    for (size_t i = 0; i < ids.size(); ++i) text->ids.push_back(max_of(std::span(rows).subspan(i * width, width)));
    const Status scored = session.score(ids, logprobs.data());
    if (!scored.ok()) fail(place + ": probabilities: " + scored.message());
    text->ids.push_back(max_of(logprobs));
  }

  // A model and a text; no text where the model was not loaded, whose error is a sentence.
  Text try_once(const std::string& place) const {
    const auto model = load("vulkan");
    if (!model.ok()) {
      const std::string& message = model.status().message();
      if (!is_of_device(model.status().code())) fail(place + ": another error: " + message);
      if (message.empty() || message.find('\n') != std::string::npos) fail(place + ": no sentence: " + message);
      Text none;
      none.error = message;
      return none;
    }
    Text text = generate(*model, place);
    check(text, place);
    text.has_struck = has_struck();
    if (!text.has_struck) return text;
    disarm();  // what comes now finds a device that works
    const Text again = generate(*model, place + ", afterwards");
    check(again, place + ", afterwards");
    if (again.backend != "vulkan") fail(place + ": the device is not used again: " + again.moved_because);
    return text;
  }

  void check(const Text& text, const std::string& place) const {
    if (text.ids != expected_.ids) fail(place + ": the text is another, from " + text.backend);
    if ((text.backend == "vulkan") != text.moved_because.empty())
      fail(place + ": runs on " + text.backend + " because '" + text.moved_because + "'");
  }

  void strike(const std::string& name, Fault fault, int64_t k) {
    const std::string place = name + ", call " + std::to_string(k) + ": " + name_of(fault);
    const int64_t before = num_objects();
    arm(name, fault, k);
    const Text text = try_once(place);
    if (text.has_struck || has_struck()) {
      ++num_struck_;
      std::printf("%s -> %s\n", place.c_str(), text.what().c_str());
    }
    disarm();
    const bool may_leave =
        fault == Fault::hang || name == "GetDeviceProcAddr";  // of what runs nothing may be destroyed
    if (!may_leave && num_objects() != before)
      fail(place + ": " + std::to_string(num_objects() - before) + " objects are left behind");
  }

  const std::string path_;
  const int64_t most_;
  Text expected_;
  int64_t num_struck_ = 0;
};

// Makes an instance that stays, or else the loader unloads the drivers with each context: lavapipe is known to begin a
// thread after that, in memory that is no longer its own.
void keep_drivers_loaded() {
  const Result<gpu::VulkanApi> api = gpu::VulkanApi::open();
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  static VkInstance instance = VK_NULL_HANDLE;
  if (api.ok() && api->CreateInstance(&info, nullptr, &instance) != VK_SUCCESS) fail("no instance of Vulkan");
}

}  // namespace
}  // namespace mote::test

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: run_faults FILE [MOST | all]\n");
    return 2;
  }
  const std::string most = argc == 3 ? argv[2] : "4";
  const int64_t count = most == "all" ? INT64_MAX : std::atoll(most.c_str());
  mote::test::keep_drivers_loaded();
  std::printf("%lld faults\n", static_cast<long long>(mote::test::Faults(argv[1], count).all()));
}
