// run_asset_faults FILE [COUNT]: loads a file with the targets fake and cpu and generates with it, while each call of
// the fake library fails in each way, one call at a time, until COUNT faults have struck: where the device is tried
// with the file, and where it was before. Whatever fails, the process lives, loading says in one sentence what is wrong
// or succeeds, the text is that of the CPU, and nothing is left behind. Prints how many faults came of each kind.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/backends/assets/fake_library.h"
#include "tests/backends/scenario.h"

namespace mote::test {
namespace {

class Faults {
 public:
  Faults(std::string path, int64_t most) : path_(std::move(path)), most_(most) {}

  void all() {
    const auto on_cpu = must(load("cpu"), "the CPU");
    for (Scenario scenario; num_struck_ < most_; ++scenario.number) {
      std::string backend;
      expected_ = generate(on_cpu, scenario, "the CPU", &backend);
      for (const bool is_tried_anew : {true, false}) strike_all(scenario, is_tried_anew);
    }
    for (const auto& [what, count] : counts_) std::printf("%s: %lld\n", what.c_str(), static_cast<long long>(count));
    std::printf("%lld faults\n", static_cast<long long>(num_struck_));
  }

 private:
  Result<std::shared_ptr<const Model>> load(const char* backend) const {
    return Model::open(Source(path_), {.backend = backend});
  }

  // A verdict is true for an identity alone.
  void begin(bool is_tried_anew) {
    if (is_tried_anew) ++identity_;
    ::setenv("MOTE_FAKE_IDENTITY", std::to_string(identity_).c_str(), 1);
  }

  void strike_all(const Scenario& scenario, bool is_tried_anew) {
    begin(true);
    if (!is_tried_anew) (void)must(load("fake"), "trying the device");
    disarm();
    std::string backend;
    int64_t num_tried = 0;
    {
      const auto model = must(load("fake"), "without faults");
      num_tried = num_calls(FakeCall::predict);
      if (generate(model, scenario, "without faults", &backend) != expected_ || backend != "fake")
        fail("without faults: another text, or not on the fake device");
    }
    std::map<FakeCall, int64_t> counts;
    for (const FakeCall call : kFakeCalls) counts[call] = num_calls(call);
    for (const auto& [call, count] : counts) {
      for (const FakeFault fault : {FakeFault::error, FakeFault::memory, FakeFault::refusal, FakeFault::nan,
                                    FakeFault::wrong, FakeFault::hang}) {
        if (!makes_sense(call, fault)) continue;
        // What is wrong for the first time later is seen by nobody.
        const int64_t last = fault == FakeFault::wrong ? num_tried : count;
        for (int64_t k = 1; k <= last && num_struck_ < most_; ++k) strike(scenario, is_tried_anew, call, fault, k);
      }
    }
  }

  void strike(const Scenario& scenario, bool is_tried_anew, FakeCall call, FakeFault fault, int64_t k) {
    const std::string place = std::string(name_of(call)) + ", call " + std::to_string(k) + ": " + name_of(fault) +
                              (is_tried_anew ? ", tried anew" : "") + ", " + std::to_string(scenario.number);
    begin(is_tried_anew);
    const int64_t before = num_objects();
    arm(call, fault, k);
    const std::string ends_on = once(scenario, place);
    if (struck_) {
      ++num_struck_;
      ++counts_[std::string(name_of(call)) + " " + name_of(fault) + ", ended on " + ends_on];
    }
    disarm();
    release_hangs();
    while (num_objects() > before) std::this_thread::yield();  // a thread that hung is still giving them back
    if (num_objects() != before) fail(place + ": objects are missing");
  }

  // What the text was computed on.
  std::string once(const Scenario& scenario, const std::string& place) {
    std::string backend, after;
    const auto named = load("fake");
    if (!named.ok()) check_sentence(named.status(), place);
    const auto model = named.ok() ? *named : must(load("auto"), place + ", auto");
    check(generate(model, scenario, place, &backend), place);
    struck_ = has_struck();
    if (!named.ok() || !struck_) return named.ok() ? backend : "nothing loaded, " + backend;
    disarm();  // what comes now finds a device that works
    check(generate(model, scenario, place + ", afterwards", &after), place + ", afterwards");
    if (after != "fake") fail(place + ": the device is not used again");
    return backend;
  }

  static void check_sentence(const Status& status, const std::string& place) {
    const std::string& message = status.message();
    if (message.empty() || message.find('\n') != std::string::npos) fail(place + ": no sentence: " + message);
    if (!is_of_device(status.code())) fail(place + ": another error: " + message);
  }

  void check(const std::vector<int32_t>& text, const std::string& place) const {
    if (text != expected_) fail(place + ": the text is another");
  }

  const std::string path_;
  const int64_t most_;
  int64_t num_struck_ = 0, identity_ = 0;
  bool struck_ = false;
  std::vector<int32_t> expected_;
  std::map<std::string, int64_t> counts_;
};

}  // namespace
}  // namespace mote::test

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: run_asset_faults FILE [COUNT]\n");
    return 2;
  }
  mote::test::Faults(argv[1], argc == 3 ? std::atoll(argv[2]) : 500).all();
}
