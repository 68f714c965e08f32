// What a backend implements to run parts of a program. docs/decisions/0009-delegates.md says why it is divided like
// this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kernels/op.h"
#include "runner/program/progress.h"

namespace mote {

// A weight that a part reads, in the form that kernels get: `tensor.data` lies in the file and is never written.
struct DelegateWeight {
  uint32_t index = 0;  // in the file: parts that read the same weight have the same index
  std::string_view name;
  Tensor tensor;
};

// One part of a method that was lowered to a blob. Everything lives as long as the program.
struct DelegatePart {
  std::string place;                    // for messages: "model.mote: delegates[3] (xnnpack)"
  std::span<const std::byte> blob;      // 64-byte aligned, within the file; its content is as untrusted as any input
  std::vector<DelegateWeight> weights;  // in the order of the blob's references
};

// An error of a part with its place in front.
inline Status at_place(const std::string& place, const Status& status) {
  return status.ok() ? status : Status(status.code(), place + ": " + status.message());
}

// What eager PyTorch computed when the file was written, for a device to be tried with. Data lives as long as the
// program.
struct DelegateSample {
  std::span<const int32_t> prompt;    // at least one id
  std::span<const int32_t> expected;  // the most likely ids behind it, one after the other; at least one
  std::span<const int32_t> probes;    // ids whose logits were recorded
  std::span<const float> logits;      // [expected, probes]
  float tolerance = 0.0f;             // of a logit, relative to the largest
};

// A product that the CPU's kernels compute for each token where they run the file.
struct DelegateProduct {
  Tensor weight;                 // [N, K]; data lies in the file
  std::string_view activations;  // as the attribute of mote.linear
};

// A part that takes ids and positions, int64 [1, T], and gives logits, as the methods of a whole decoder do.
struct WholePart {
  size_t index = 0, ids = 0, positions = 1;  // the last two of its inputs
  int64_t tokens = 0;                        // of every call; 0: any
  int64_t width = 0;                         // of a row of logits
  bool every_row = false;                    // logits after each token, or after the last only
};

class DelegateProgram;

// The methods of a target as the parts of a program, which runs them as a session does.
struct WholeMethods {
  std::shared_ptr<const DelegateProgram> program;
  std::vector<WholePart> parts;  // those whose states are the delegate's alone
};

// What a backend is given when a program is loaded.
struct DelegateSource {
  std::string cache_prefix;    // how the paths of files begin in which it may keep what it packs; empty: nowhere
  std::string path;            // of the file; empty: it has none
  std::string target;          // a name from the file, as untrusted as a blob
  uint32_t program_crc32 = 0;  // of the program, and with it of its weights: these two tell what a backend keeps of
  uint64_t file_bytes = 0;     // one file from what it keeps of another
  std::shared_ptr<const void> file;  // while it lives the file stays mapped: for what may outlive a load that failed
  // The pages of mapped files that weights lie in, each from its first page on and stays mapped for as long as the
  // program; empty: none are mapped.
  std::vector<std::span<const std::byte>> mapped_pages;
  std::optional<uint32_t> file_owner;  // the user whose files beside the model are trusted like the model
  bool guards_pages = true;  // files that it maps: a page that cannot be read is an error of `execute` (PageGuard)
  // Whether what was read of the file's weights is what the program was exported with; asked before any of it is kept
  // in a file. Errors: kFileChanged. Empty: it is in memory that does not change.
  std::function<Status()> check_unchanged;
  std::vector<DelegateSample> samples;
  std::vector<DelegateProduct> cpu_products;  // empty: the file has no target for the CPU, or other products too
  // Whether another way to run the file is at hand (`auto`): a backend that finds itself slower than the CPU then
  // refuses to load.
  bool is_choice = false;
  // Whether to find out anew what is the fastest on this device, for as long as that takes, and to keep it.
  bool tune = false;
  // A pool such as a session has, for whoever compares the device with the kernels of the CPU. Empty: there is none.
  std::function<Result<std::unique_ptr<ThreadPool>>()> make_threads;
  // The target's methods with what a backend makes of these parts, for parts that are no whole methods to be tried with
  // samples; asked during `load`, and owns what it uses. Empty: other backends run parts of the methods too.
  std::function<Result<WholeMethods>(std::shared_ptr<const DelegateProgram>)> whole_methods;
  std::vector<DelegatePart> parts;  // calls name a part by its index here
  Progress progress;                // to be told how far `load` has come
};

struct DelegateOptions {
  ThreadPool* threads = nullptr;  // the session's, which also runs the kernels; outlives the delegate
  int64_t max_tokens = 0;         // largest T of a call
  int64_t context_length = 0;     // positions that the session may reach; 0: not known
  int64_t rewind_tokens = 0;      // by which a session wants to go back at no cost, where a state has no rows
  uint64_t rewind_bytes = 0;      // at most for what is kept for that
};

// The state of a delegate at one position. Immutable. Thread safety: any thread.
class DelegateSnapshot {
 public:
  virtual ~DelegateSnapshot() = default;
  // Bytes of memory that it holds. Caches of snapshots count them.
  virtual uint64_t held_bytes() const = 0;
  // The bytes that Delegate::import makes a snapshot of again. Empty: a file cannot hold the state, so whoever opens
  // the file computes the tokens again.
  virtual Result<std::vector<std::byte>> to_bytes() const { return std::vector<std::byte>(); }
};

// A step of a part's call as its device measured it.
struct DelegateStep {
  const char* name = "";  // what runs, and where: both live as long as the program
  const char* origin = "";
  int64_t start_ns = 0, end_ns = 0;  // since the first step began
  Cost cost{};
  int32_t submission = 0;  // the last that it was part of, counted from 1 in its call; 0: there are none
};

// One of a row's largest elements.
struct LargestElement {
  float value = 0.0f;
  int32_t index = 0;
};

inline constexpr size_t kMostLargest = 65;  // of a row that a call is asked for

// A backend's share of one session: all of its parts in all methods, and their state if they have any.
// Thread safety: one thread at a time.
class Delegate {
 public:
  virtual ~Delegate() = default;

  // Makes a part ready for calls of these sizes: dtypes and sizes of inputs and outputs are those of the coming calls,
  // inputs are contiguous, `data` is not yet known. Returns the scratch memory that execute needs, in bytes. Errors:
  // kInvalidProgram where the sizes are not those that the part takes and gives, kOutOfMemory.
  virtual Result<size_t> prepare(size_t part, const Call& call, int64_t tokens) = 0;
  // Runs a prepared part: reads inputs, writes every element of the outputs. Avoids allocation where it can.
  virtual Status execute(size_t part, const Call& call, KernelContext& context) = 0;

  // As execute, for profiles: adds the steps that the device took. A backend that cannot tell adds none, and the part
  // counts as one step.
  virtual Status execute_measured(size_t part, const Call& call, KernelContext& context, std::vector<DelegateStep>*) {
    return execute(part, call, context);
  }

  // From now on the calls of parts with one output, of floats, are asked for the `count` largest elements of each of
  // its rows alone; 0: for the output. A backend that does not find them writes the output as ever.
  virtual void want_largest(size_t /*count*/) {}
  // What the latest call found of that, [rows, count]: each row's largest first, of equal elements the first; a NaN
  // counts as -infinity. Valid until the next call of any part. Empty: it wrote the output.
  virtual std::span<const LargestElement> largest() const { return {}; }
  // Writes the output of the latest call, which found the largest elements. Errors: what the device reports.
  virtual Status read_output(Tensor* /*output*/) { return {Code::kInternal, "the backend keeps no outputs"}; }

  // Bytes of memory that belong to this delegate alone, without those that sessions share.
  virtual uint64_t held_bytes() const { return 0; }

  // The calls from here on are about the delegate's state, and are for delegates whose program has_state. seek goes
  // back to `position`. False: it cannot, nothing has changed, and the session computes its tokens again from position
  // 0. Position 0, the one at which a call that failed began, and those of the latest call from the end of the tokens
  // that it was to keep (SequenceStates::num_kept) can always be reached; of these, those that are taken back are at
  // most most_taken_back(). A delegate without a state can go anywhere.
  virtual bool seek(int64_t position) { return position >= 0; }
  // The last of the first `to` positions that seek goes to.
  virtual int64_t nearest(int64_t to) const { return to; }
  // Tokens at the end of a call.
  virtual int64_t most_taken_back() const { return int64_t{1} << 62; }
  // nullptr: it cannot make one, so whoever wants the tokens computes them again.
  virtual Result<std::shared_ptr<const DelegateSnapshot>> snapshot() const {
    return std::shared_ptr<const DelegateSnapshot>();
  }
  // Takes over the state of a snapshot of any delegate of the same program. After an error the delegate is at position
  // 0.
  virtual Status restore(const DelegateSnapshot&) { return {Code::kInternal, "the backend restores no snapshots"}; }
  // Makes a snapshot of bytes that to_bytes made. They come from a file, and so from anyone. Errors: kInvalidSession
  // for other bytes.
  virtual Result<std::shared_ptr<const DelegateSnapshot>> import(std::span<const std::byte>) const {
    return Status(Code::kInvalidSession, "the backend reads no saved states");
  }

  // The last calls let a session go on elsewhere (docs/decisions/0026-sessions-move.md). What the keys and values of a
  // state are read and written as, float32 or float16; nullopt: they cannot be, or this delegate does not keep them.
  virtual std::optional<DType> cache_dtype(int32_t) const { return std::nullopt; }
  // The rows of the first positions that it holds, [positions, num_heads, head_dim] and [.., value_head_dim].
  virtual Status read_cache(int32_t, std::span<std::byte> /*keys*/, std::span<std::byte> /*values*/) const {
    return {Code::kInternal, "the backend gives no keys and values"};
  }
  // The same of the first `positions`, to a delegate at position 0. It is at `positions` when all its states have come.
  virtual Status write_cache(int32_t, int64_t /*positions*/, std::span<const std::byte> /*keys*/,
                             std::span<const std::byte> /*values*/) {
    return {Code::kInternal, "the backend takes no keys and values"};
  }
  // Whether it keeps a recurrent state and can give and take it.
  virtual bool has_recurrent(int32_t) const { return false; }
  // The state's elements at the present position, float32, in order. Errors: kUnsupportedBackend where it is not held
  // as it is there.
  virtual Status read_recurrent(int32_t, std::span<std::byte> /*elements*/) const {
    return {Code::kInternal, "the backend gives no recurrent states"};
  }
  // As write_cache.
  virtual Status write_recurrent(int32_t, int64_t /*positions*/, std::span<const std::byte> /*elements*/) {
    return {Code::kInternal, "the backend takes no recurrent states"};
  }
};

// What a backend has made of its parts of one file, such as packed weights. The sessions of a model share it. Thread
// safety: any thread.
class DelegateProgram {
 public:
  virtual ~DelegateProgram() = default;
  // The delegate of one session. Errors: kOutOfMemory, or what the device reports.
  virtual Result<std::unique_ptr<Delegate>> open(const DelegateOptions& options) const = 0;
  // Whether its delegates keep states of the model. Each session then has a delegate of its own, even where sessions
  // share an engine.
  virtual bool has_state() const { return false; }
  // Whether its device is gone for good: sessions that open from now on need a program that is loaded again.
  virtual bool is_lost() const { return false; }
  // Bytes of private memory that the sessions share, and of memory backed by files.
  virtual uint64_t private_bytes() const { return 0; }
  virtual uint64_t file_backed_bytes() const { return 0; }
};

// One backend of this build. Registered before main and never destroyed.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // Whether the backend works on this device. An error says what is missing and what to do about it. Each load asks
  // once, so the answer must be quick.
  virtual Status check_device() const = 0;
  // Why `auto` should prefer the CPU kernels to this backend for these parts on this device; empty: it should not. The
  // answer must be quick. It is asked before `load`, with parts that are as untrusted as there.
  virtual std::string why_not(const DelegateSource&) const { return {}; }
  // What an earlier load found out about these parts on this device, for people; empty: nothing. Quick, like why_not.
  virtual std::string findings(const DelegateSource&) const { return {}; }
  // Reads and checks every blob, and packs the weights that have to be packed. Nothing may crash, hang or read outside
  // of what it is given, whatever a blob holds. Errors: kInvalidProgram naming the part's place, the field and what
  // would be accepted; kOutOfMemory.
  virtual Result<std::shared_ptr<const DelegateProgram>> load(DelegateSource source) const = 0;
  // Whether load would take the parts, as far as that can be told without packing anything. For callers that only
  // describe a file.
  virtual Status check(const DelegateSource& source) const { return load(source).status(); }
};

void register_backend(const Backend* backend);
// The backend of that name; nullptr: it is not in this build.
const Backend* find_backend(std::string_view name);
std::vector<const Backend*> all_backends();

struct BackendRegistration {
  explicit BackendRegistration(const Backend* backend) { register_backend(backend); }
};

}  // namespace mote
