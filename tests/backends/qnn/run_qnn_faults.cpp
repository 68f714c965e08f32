// run_qnn_faults FILE LIBRARIES [COUNT]: as run_asset_faults, with the targets qnn and cpu and the library of
// faulty_library.cpp that computes itself. Each fault has a process of its own, as verdicts are remembered in one.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>

#include "tests/backends/qnn/faulty_library.h"
#include "tests/backends/scenario.h"

namespace mote::test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPlaces = 8;   // of calls that make a graph, which are hundreds
constexpr int64_t kHangs = 256;  // of so many that could hang, one does: each takes as long as calls are waited for

// What a process of its own says.
std::string in_child(const std::function<std::string()>& work, const std::string& place) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) fail("pipe");
  const pid_t child = fork();
  if (child == 0) {
    const std::string said = work();
    _exit(write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  std::array<char, 256> some{};
  for (ssize_t count = 0; (count = read(ends[0], some.data(), some.size())) > 0;)
    said.append(some.data(), static_cast<size_t>(count));
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) fail(place + ": the process died");
  return said;
}

class Faults {
 public:
  Faults(std::string path, const std::string& libraries, int64_t most) : path_(std::move(path)), most_(most) {
    ::setenv("MOTE_QNN_LIBRARIES", libraries.c_str(), 1);
    ::setenv("MOTE_TEST_QNN_LIBRARY", "interpreter", 1);
    ::setenv("MOTE_QNN_PATIENCE", "20", 0);
    libraries_ = libraries;
  }

  void all() {
    for (Scenario scenario; num_struck_ < most_; ++scenario.number) {
      std::string backend;
      expected_ = generate(must(load("cpu"), "the CPU"), scenario, "the CPU", &backend);
      for (const bool is_tried_anew : {true, false}) strike_all(scenario, is_tried_anew);
    }
    for (const auto& [what, count] : counts_) std::printf("%s: %lld\n", what.c_str(), static_cast<long long>(count));
    std::printf("%lld faults\n", static_cast<long long>(num_struck_));
  }

 private:
  Result<std::shared_ptr<const Model>> load(const char* backend) const {
    return Model::open(Source(path_), {.backend = backend});
  }

  // The verdict and the context are those of a load without faults, or none.
  void begin(bool is_tried_anew) {
    std::vector<fs::path> kept;
    for (const auto& entry : fs::directory_iterator(fs::path(path_).parent_path())) {
      if (entry.path().string().starts_with(path_ + ".qnn-")) kept.push_back(entry.path());
    }
    for (const fs::path& file : kept) fs::remove(file);
    void* library = dlopen((libraries_ + "/libQnnHtp.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) fail(dlerror());
    arm_ = reinterpret_cast<qnn::test::Arm>(dlsym(library, "mote_test_arm"));
    count_ = reinterpret_cast<qnn::test::Count>(dlsym(library, "mote_test_count"));
    if (!is_tried_anew) (void)must(load("qnn"), "trying the device");
  }

  // How often each call is made; of execute, those of the load alone too.
  std::string counts(const Scenario& scenario, bool is_tried_anew) {
    begin(is_tried_anew);
    arm_("", "", 0);
    std::string backend;
    const auto model = must(load("qnn"), "without faults");
    std::ostringstream said;
    said << count_("execute") << ' ';
    if (generate(model, scenario, "without faults", &backend) != expected_ || backend != "qnn")
      fail("without faults: another text, or not on QNN");
    for (const char* call : qnn::test::kCalls) said << count_(call) << ' ';
    return said.str();
  }

  void strike_all(const Scenario& scenario, bool is_tried_anew) {
    std::istringstream said(in_child([&] { return counts(scenario, is_tried_anew); }, "without faults"));
    int64_t num_tried = 0, count = 0;
    said >> num_tried;
    for (const std::string call : qnn::test::kCalls) {
      said >> count;
      const bool runs = call == "execute";
      for (const std::string fault : {"error", "nan", "wrong", "hang"}) {
        const bool can_hang = runs || call == "read";
        if ((fault == "hang" && !can_hang) || (!runs && (fault == "nan" || fault == "wrong"))) continue;
        // What is wrong for the first time later is seen by nobody.
        const int64_t last = fault == "wrong" ? num_tried : count;
        const int64_t step = runs ? 1 : std::max<int64_t>(1, last / kPlaces);
        for (int64_t k = 1 + scenario.number % step; k <= last && num_struck_ < most_; k += step) {
          if (fault == "hang" && num_hangs_++ % kHangs != 0) continue;
          const std::string place = call + ", call " + std::to_string(k) + ": " + fault +
                                    (is_tried_anew ? ", tried anew, " : ", ") + std::to_string(scenario.number);
          const auto strikes = [&] { return strike(scenario, is_tried_anew, call, fault, k, place); };
          const std::string ends_on = in_child(strikes, place);
          num_struck_ += ends_on.empty() ? 0 : 1;
          if (!ends_on.empty()) ++counts_[call + " " + fault + ", " + ends_on];
        }
      }
    }
  }

  std::string strike(const Scenario& scenario, bool is_tried_anew, const std::string& call, const std::string& fault,
                     int64_t k, const std::string& place) {
    begin(is_tried_anew);
    arm_(call.c_str(), fault.c_str(), k);
    const auto named = load("qnn");
    if (!named.ok()) check_sentence(named.status(), place);
    const auto model = named.ok() ? *named : must(load("auto"), place + ", auto");
    std::string backend;
    if (generate(model, scenario, place, &backend) != expected_) fail(place + ": the text is another, on " + backend);
    if (count_("") == 0) return {};
    const bool is_remembered = fault != "hang" || !load("qnn").ok();
    if (!is_remembered) fail(place + ": is not remembered");
    return (named.ok() ? "ended on " : "nothing loaded, ") + backend;
  }

  static void check_sentence(const Status& status, const std::string& place) {
    const std::string& message = status.message();
    if (message.empty() || message.find('\n') != std::string::npos) fail(place + ": no sentence: " + message);
    if (!is_of_device(status.code())) fail(place + ": another error: " + message);
  }

  const std::string path_;
  std::string libraries_;
  const int64_t most_;
  qnn::test::Arm arm_ = nullptr;
  qnn::test::Count count_ = nullptr;
  int64_t num_struck_ = 0, num_hangs_ = 0;
  std::vector<int32_t> expected_;
  std::map<std::string, int64_t> counts_;
};

}  // namespace
}  // namespace mote::test

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: run_qnn_faults FILE LIBRARIES [COUNT]\n");
    return 2;
  }
  mote::test::Faults(argv[1], argv[2], argc == 4 ? std::atoll(argv[3]) : 500).all();
}
