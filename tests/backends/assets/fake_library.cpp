#include "tests/backends/assets/fake_library.h"

#include <array>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <thread>

#include "backends/assets/backend.h"
#include "kernels/ops/attention/rows.h"
#include "runner/model/model.h"
#include "runner/session/engine.h"
#include "runner/session/state/memory.h"

namespace mote::test {
namespace {

using assets::Elements;
using assets::Port;
using assets::Reference;
using assets::StatePart;
using assets::StatePort;

constexpr std::array<const char*, 5> kCallNames = {"open", "make_states", "predict", "read", "write"};
constexpr std::array<const char*, 7> kFaultNames = {"error", "memory", "refusal", "nan", "wrong", "hang", "death"};
constexpr std::string_view kFiles[] = {"model.mote"};
constexpr assets::AssetKind kKind{"fake", "the tests", ".fake", kFiles};

std::atomic<int64_t> live_objects{0};

struct Counted {
  Counted() { ++live_objects; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --live_objects; }
};

// Which call fails, and how.
class Faults {
 public:
  Faults() {
    const char* text = std::getenv("MOTE_FAKE_FAULT");
    for (const FakeCall call : kFakeCalls) {
      for (size_t fault = 0; text != nullptr && fault < kFaultNames.size(); ++fault) {
        const std::string begin = std::string(name_of(call)) + ":" + kFaultNames[fault] + ":";
        if (std::string_view(text).starts_with(begin))
          arm(call, static_cast<FakeFault>(fault), std::atoll(text + begin.size()));
      }
    }
  }

  void arm(FakeCall call, FakeFault fault, int64_t k) {
    const std::lock_guard lock(mutex_);
    call_ = call;
    fault_ = fault;
    k_ = k;
    has_struck_ = false;
    counts_ = {};
  }
  int64_t count(FakeCall call) {
    const std::lock_guard lock(mutex_);
    return counts_[static_cast<size_t>(call)];
  }
  bool has_struck() {
    const std::lock_guard lock(mutex_);
    return has_struck_;
  }
  // Whether the next call hangs: nobody need wait for it long.
  bool hangs_next() {
    const std::lock_guard lock(mutex_);
    return k_ > 0 && fault_ == FakeFault::hang && counts_[static_cast<size_t>(call_)] + 1 == k_;
  }

  // What a call is to suffer. It returns late where it hangs, and then fails.
  Status begin(FakeCall call, FakeFault* fault, bool* strikes) {
    std::unique_lock lock(mutex_);
    const int64_t count = ++counts_[static_cast<size_t>(call)];
    *strikes = k_ > 0 && call == call_ && (count == k_ || (count > k_ && fault_ == FakeFault::wrong));
    *fault = fault_;
    if (!*strikes) return {};
    has_struck_ = true;
    const std::string what = std::string("the ") + name_of(call) + " failed as it was told to";
    switch (fault_) {
      case FakeFault::error: return {Code::kInternal, what};
      case FakeFault::memory: throw std::bad_alloc();
      case FakeFault::refusal: return {Code::kUnsupportedBackend, what};
      case FakeFault::death: std::_Exit(1);
      case FakeFault::hang: break;
      default: return {};
    }
    ++num_hanging_;
    const int64_t release = num_releases_;
    changed_.wait(lock, [&] { return num_releases_ != release; });
    --num_hanging_;
    changed_.notify_all();
    return {Code::kInternal, what};
  }

  void release() {
    std::unique_lock lock(mutex_);
    ++num_releases_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return num_hanging_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  FakeCall call_ = FakeCall::open;
  FakeFault fault_ = FakeFault::error;
  int64_t k_ = 0, num_hanging_ = 0, num_releases_ = 0;
  bool has_struck_ = false;
  std::array<int64_t, kCallNames.size()> counts_{};
};

Faults& faults() {
  static Faults* made = new Faults;  // threads that hang may outlive main
  return *made;
}

// Elements of a state in the port's shape.
class FakeStates final : public assets::AssetStates, Counted {
 public:
  explicit FakeStates(std::span<const StatePort> ports) {
    for (const StatePort& port : ports) elements_[port.port.name].resize(port.port.num_bytes());
  }

  Result<Elements> read(const StatePort& port, int64_t positions) override {
    MOTE_RETURN_IF_ERROR(suffer(FakeCall::read));
    const Elements& from = elements_.at(port.port.name);
    if (!port.is_cache()) return from;
    Elements rows(port.bytes_of(positions));
    each_head(port, positions, [&](size_t held, size_t given, size_t bytes) {
      std::memcpy(rows.data() + given, from.data() + held, bytes);
    });
    return rows;
  }
  Status write(const StatePort& port, int64_t positions, const Elements& rows) override {
    MOTE_RETURN_IF_ERROR(suffer(FakeCall::write));
    Elements& to = elements_.at(port.port.name);
    if (!port.is_cache()) {
      to = rows;
      return {};
    }
    each_head(port, positions, [&](size_t held, size_t given, size_t bytes) {
      std::memcpy(to.data() + held, rows.data() + given, bytes);
    });
    return {};
  }

  // A row [positions, heads, width] of a cache.
  std::span<std::byte> row(const StatePort& port, int64_t position, int64_t head) {
    const auto bytes = static_cast<size_t>(port.port.shape[3] * dtype_bytes(port.port.dtype));
    const auto index = static_cast<size_t>(head * port.port.shape[2] + position);
    return std::span(elements_.at(port.port.name)).subspan(index * bytes, bytes);
  }
  Elements& whole(const StatePort& port) { return elements_.at(port.port.name); }

 private:
  static Status suffer(FakeCall call) {
    FakeFault fault;
    bool strikes = false;
    return faults().begin(call, &fault, &strikes);
  }
  template <typename Visit> static void each_head(const StatePort& port, int64_t positions, const Visit& visit) {
    const auto row = static_cast<size_t>(port.port.shape[3] * dtype_bytes(port.port.dtype));
    for (size_t head = 0; head < static_cast<size_t>(port.port.shape[1]); ++head) {
      visit(head * static_cast<size_t>(port.port.shape[2]) * row, head * static_cast<size_t>(positions) * row,
            static_cast<size_t>(positions) * row);
    }
  }

  std::map<std::string, Elements> elements_;
};

class FakeAsset final : public assets::Asset, Counted {
 public:
  FakeAsset(std::shared_ptr<const Model> model, Engine engine) : model_(std::move(model)), engine_(std::move(engine)) {}

  Result<std::unique_ptr<assets::AssetStates>> make_states(std::span<const StatePort> ports) override {
    FakeFault fault;
    bool strikes = false;
    MOTE_RETURN_IF_ERROR(faults().begin(FakeCall::make_states, &fault, &strikes));
    return std::unique_ptr<assets::AssetStates>(std::make_unique<FakeStates>(ports));
  }

  Status predict(const Reference& function, std::span<const Elements> inputs, std::span<Elements> outputs,
                 assets::AssetStates* states) override {
    FakeFault fault;
    bool strikes = false;
    MOTE_RETURN_IF_ERROR(faults().begin(FakeCall::predict, &fault, &strikes));
    const char* slow = std::getenv("MOTE_FAKE_SLOW");
    if (slow != nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(std::atoll(slow)));
    auto& held = *static_cast<FakeStates*>(states);
    MOTE_RETURN_IF_ERROR(compute(function, inputs, outputs, held));
    if (!strikes) return {};
    for (Elements& output : outputs) {
      const std::span<float> logits(reinterpret_cast<float*>(output.data()), output.size() / sizeof(float));
      for (size_t i = 0; i < logits.size(); ++i)
        logits[i] = fault == FakeFault::nan ? NAN : logits[i] + (i % 2 == 0 ? 9.0f : -9.0f);
    }
    for (const StatePort& port : function.states) {
      const std::span<std::byte> bytes(held.whole(port));
      if (fault == FakeFault::nan) std::memset(bytes.data(), 0xff, bytes.size());
    }
    return {};
  }

 private:
  static std::span<const int32_t> integers(const Reference& function, std::span<const Elements> inputs,
                                           const char* name) {
    const Elements& from = inputs[*function.input(name)];
    return {reinterpret_cast<const int32_t*>(from.data()), from.size() / sizeof(int32_t)};
  }

  // The rows of the first `positions` of a cache, on the way from or to the states.
  struct Rows {
    std::vector<float> keys, values;
    Rows(const KvCache& cache, int64_t positions)
        : keys(static_cast<size_t>(positions * cache.num_heads * cache.head_dim)),
          values(static_cast<size_t>(positions * cache.num_heads * cache.value_head_dim)) {}
    CacheRows rows() {
      return {DType::kFloat32, std::as_writable_bytes(std::span(keys)), std::as_writable_bytes(std::span(values))};
    }
    template <typename Copy> void each(const StatePort& port, int64_t positions, const Copy& copy) {
      std::vector<float>& side = port.part == StatePart::keys ? keys : values;
      std::span<std::byte> rest = std::as_writable_bytes(std::span(side));
      for (int64_t position = 0; position < positions; ++position) {
        for (int64_t head = 0; head < port.port.shape[1]; ++head) {
          const auto bytes = static_cast<size_t>(port.port.shape[3]) * sizeof(float);
          copy(position, head, rest.first(bytes));
          rest = rest.subspan(bytes);
        }
      }
    }
  };

  Status compute(const Reference& function, std::span<const Elements> inputs, std::span<Elements> outputs,
                 FakeStates& held) {
    const std::span<const int32_t> ids = integers(function, inputs, "input_ids"),
                                   positions = integers(function, inputs, "position_ids");
    const Bound& bound = *model_->bound();
    const auto tokens = static_cast<int64_t>(ids.size());
    const int64_t first = positions.front(), end = first + tokens;
    MOTE_ASSIGN(StateMemory memory,
                StateMemory::allocate(bound, {function.context_length, function.context_length, KvType::kFloat32}));
    MOTE_RETURN_IF_ERROR(memory.reserve(0, end));
    MOTE_RETURN_IF_ERROR(load(function, held, first, memory));
    const std::string method_name = function.function.substr(0, function.function.find('_'));
    MOTE_ASSIGN(const uint32_t method, bound.method_index(method_name));
    Executor& executor = *engine_.executor;
    MOTE_RETURN_IF_ERROR(executor.prepare(method, tokens));
    std::ranges::copy(ids, executor.input(method, 0).begin());
    std::ranges::copy(positions, executor.input(method, 1).begin());
    const std::atomic<bool> cancelled{false};
    MOTE_RETURN_IF_ERROR(executor.run(method, {memory.kv_caches(), memory.recurrent_states()}, cancelled));
    const std::span<const float> logits = executor.output(method, 0);
    MOTE_REQUIRE(logits.size_bytes() == outputs[0].size(), Code::kInternal, "other sizes");
    std::memcpy(outputs[0].data(), logits.data(), logits.size_bytes());
    keep(function, held, end, memory);
    return {};
  }

  Status load(const Reference& function, FakeStates& held, int64_t positions, StateMemory& memory) {
    std::vector<float> recurrent(static_cast<size_t>(memory.recurrent().num_floats()));
    for (const StatePort& port : function.states) {
      const auto state = static_cast<size_t>(port.state);
      if (port.part == StatePart::state) {
        const auto offset = static_cast<size_t>(memory.recurrent_states()[state].offset);
        std::memcpy(recurrent.data() + offset, held.whole(port).data(), held.whole(port).size());
      }
      if (port.part != StatePart::keys || positions == 0) continue;
      const KvCache& cache = memory.kv_caches()[state];
      Rows rows(cache, positions);
      for (const StatePort& each : function.states) {
        if (each.state != port.state) continue;
        rows.each(each, positions, [&](int64_t position, int64_t head, std::span<std::byte> to) {
          std::ranges::copy(held.row(each, position, head), to.begin());
        });
      }
      MOTE_RETURN_IF_ERROR(store_rows(cache, positions, rows.rows(), *engine_.threads));
    }
    memory.recurrent().adopt(recurrent, {}, positions, positions);
    return {};
  }

  // Of caches with a window what their rings hold.
  void keep(const Reference& function, FakeStates& held, int64_t end, StateMemory& memory) {
    for (const StatePort& port : function.states) {
      const auto state = static_cast<size_t>(port.state);
      if (port.part == StatePart::state) {
        const Tensor& tensor = memory.recurrent_states()[state].tensor;
        std::memcpy(held.whole(port).data(), tensor.data, held.whole(port).size());
      }
      if (port.part != StatePart::keys) continue;
      const KvCache& cache = memory.kv_caches()[state];
      Rows rows(cache, end);
      load_rows(cache, end, rows.rows(), *engine_.threads);
      for (const StatePort& each : function.states) {
        if (each.state != port.state) continue;
        rows.each(each, end, [&](int64_t position, int64_t head, std::span<std::byte> from) {
          std::ranges::copy(from, held.row(each, position, head).begin());
        });
      }
    }
  }

  std::shared_ptr<const Model> model_;
  Engine engine_;
};

class FakeLibrary final : public assets::AssetLibrary {
 public:
  Status check_device() override { return {}; }
  std::string identity() override {
    const char* identity = std::getenv("MOTE_FAKE_IDENTITY");
    return std::string("fake 1; ") + (identity == nullptr ? "" : identity);
  }
  std::string device_name() override { return "the fake device"; }
  Result<assets::Units> units() override {
    const char* units = std::getenv("MOTE_FAKE_UNITS");
    if (units == nullptr) return assets::Units{};
    return assets::Units{units, "plain"};
  }

  Result<std::shared_ptr<assets::Asset>> open(const std::string& folder, const std::string&,
                                              std::span<const Reference> functions, const std::string&) override {
    return open_fake(folder + "/model.mote", functions);
  }
  std::chrono::nanoseconds patience_to_open() const override { return patience(); }
  std::chrono::nanoseconds patience_to_compute() const override { return patience(); }

 private:
  static std::chrono::nanoseconds patience() {
    return faults().hangs_next() ? std::chrono::milliseconds(2) : std::chrono::milliseconds(600'000);
  }
};

class FakeBackend final : public assets::AssetBackend {
 public:
  FakeBackend() : AssetBackend(kKind) {}

 protected:
  std::shared_ptr<assets::AssetLibrary> library() const override {
    static const auto made = std::make_shared<FakeLibrary>();
    return made;
  }
};

const FakeBackend backend;
const BackendRegistration registration(&backend);

}  // namespace

const char* name_of(FakeCall call) { return kCallNames[static_cast<size_t>(call)]; }
const char* name_of(FakeFault fault) { return kFaultNames[static_cast<size_t>(fault)]; }
bool makes_sense(FakeCall call, FakeFault fault) {
  return call == FakeCall::predict || (fault != FakeFault::nan && fault != FakeFault::wrong);
}
void arm(FakeCall call, FakeFault fault, int64_t k) { faults().arm(call, fault, k); }
int64_t num_calls(FakeCall call) { return faults().count(call); }
bool has_struck() { return faults().has_struck(); }
void release_hangs() { faults().release(); }
Result<std::shared_ptr<assets::Asset>> open_fake(const std::string& path, std::span<const Reference> functions) {
  FakeFault fault;
  bool strikes = false;
  MOTE_RETURN_IF_ERROR(faults().begin(FakeCall::open, &fault, &strikes));
  MOTE_ASSIGN(auto model, Model::open(Source(path), {.backend = "cpu"}));
  EngineOptions options;
  options.num_threads = 1;
  options.context_length = options.max_tokens = functions.front().context_length;
  MOTE_ASSIGN(Engine engine, make_engine(model->bound(), options));
  return std::shared_ptr<assets::Asset>(std::make_shared<FakeAsset>(std::move(model), std::move(engine)));
}
int64_t num_objects() { return live_objects; }

}  // namespace mote::test
