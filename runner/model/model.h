// A .mote file that is ready to run: program, tokenizer, defaults.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/option_rows.h"
#include "base/status.h"
#include "runner/model/derived.h"
#include "runner/program/target.h"
#include "tokenizer/tokenizer.h"

// clang-format off
#define MOTE_MODEL_OPTIONS(X)                                                                                          \
  X(backend, std::string, std::string(kAnyBackend), anything(), "", kPlain,                                            \
    "What runs the model, of what the file was exported for: cpu, xnnpack, ...; auto: the best that works here")       \
  X(cache_dir, std::string, "", anything(), "", kPlain,                                                                \
    "An existing folder where a backend may keep what it packs; unless given beside the file, or MOTE_CACHE_DIR")      \
  X(weights_file, std::string, "", anything(), "", kPlain,                                                             \
    "Where the .motew file is that holds the weights of the model's file, unless beside it")                           \
  X(name, std::string, "", anything(), "", kPlain,                                                                     \
    "Of what is no path, in messages and for what a backend keeps")                                                    \
  X(mmap, bool, true, anything(), "", kPlain,                                                                          \
    "Map the file instead of reading all of it; reading suits slow or removable storage")                              \
  X(sigbus_handler, bool, true, anything(), "", kPlain,                                                                \
    "Handle SIGBUS, so that a mapped file that becomes shorter is an error of the call and not the end of the process")  \
  X(tune, bool, false, anything(), "", kPlain,                                                                         \
    "Have a backend find out anew, and for as long as that takes, what is the fastest here; it keeps what it found")
// clang-format on

namespace mote {

// Whether the text of a tokenizer.json can be compiled into what a .mote file holds. Errors: kInvalidTokenizer naming
// the field.
Status check_tokenizer_json(std::string_view json);

struct OpenOptions {
  MOTE_MODEL_OPTIONS(MOTE_OPTION_FIELD)
  Progress progress{};
};

// A model, which its sessions share. Thread safety: immutable.
class Model {
 public:
  // Maps or reads, verifies and binds the file. Mapped weights and tokenizer are not touched; a build that leaves parts
  // out opens the tokenizer.
  // Errors: those of map, verify and bind_target.
  static Result<std::shared_ptr<const Model>> open(const Source& source, const OpenOptions& options = {});

  const std::shared_ptr<const Bound>& bound() const { return bound_; }
  // The target of that name over the same weights, bound when it is first asked for, and again where the device of one
  // of its backends is gone. Errors: those of bind. Thread safety: any thread; one that is bound is waited for.
  Result<std::shared_ptr<const Bound>> bound_for(std::string_view target) const;
  const fb::Program& program() const { return bound_->program(); }
  const std::string& path() const { return bound_->file().name(); }

  int32_t vocab_size() const { return program().vocab_size(); }
  int32_t max_position_embeddings() const { return program().max_position_embeddings(); }
  int32_t bos_token_id() const { return program().bos_token_id(); }
  std::span<const int32_t> eos_token_ids() const;
  bool is_eos(int32_t id) const;
  // generation_config.json, as the checkpoint has it.
  std::string_view generation_config() const { return program().generation_config()->string_view(); }

  // kInvalidArgument if the file has no methods that generate text.
  Status require_generation() const;

  bool has_tokenizer() const { return !bound_->verified().segment(fb::SegmentKind::tokenizer).empty(); }
  // nullptr: the file has no tokenizer. Errors: kInvalidTokenizer, kFileChanged. Cost: the first call opens a copy of
  // it, which no other process can change.
  Result<const Tokenizer*> tokenizer() const;
  // The same, but kInvalidArgument if the file has no tokenizer.
  Result<const Tokenizer*> require_tokenizer() const;
  std::string_view chat_template() const { return chat_template_; }

  // A T that a part above this one makes of the model. `make` is called once; its value or its error is kept and
  // returned from then on.
  template <typename T, typename Make>
  Result<std::shared_ptr<const T>> derived(const Make& make) const {
    auto made = derived_.get<T>(make);
    if (!made.ok()) return Status(made.status().code(), path() + ": " + made.status().message());
    return made;
  }

  uint64_t file_bytes() const { return bound_->file().file_bytes().size(); }
  uint64_t weight_bytes() const { return find_segment(program(), fb::SegmentKind::weights)->bytes(); }
  // Errors: kInvalidProgram naming the segment whose checksum is wrong. Cost: reads the whole file.
  Status check_segments() const;

  // The description that describe() of describe.h gives.
  Result<std::string> describe() const;

 private:
  Model(Chosen chosen, BindOptions bind_options);

  std::shared_ptr<const Bound> bound_;
  BindOptions bind_options_;  // for other targets
  mutable std::mutex targets_mutex_;
  mutable std::map<std::string, std::shared_ptr<const Bound>, std::less<>> targets_;  // the latest of each name
  std::vector<PassedOver> passed_over_;
  std::string chat_template_;
  Derived derived_;
};

}  // namespace mote
