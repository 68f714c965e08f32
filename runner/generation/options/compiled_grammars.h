// Grammars by their sources, compiled once while they are used again.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/status.h"
#include "runner/generation/options/option_table.h"

namespace mote {

// The grammars that a model's texts were to follow last: at most kMaxGrammars, and in all at most max_bytes of sources,
// automata and masks, as counted at each call. The one that was asked for is kept whatever it has. A grammar that is in
// use lives on without being kept. Thread safety: any thread.
class CompiledGrammars {
 public:
  static constexpr size_t kMaxGrammars = 32;
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  explicit CompiledGrammars(size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}

  // The arguments and errors of compiled_grammar.
  Result<std::shared_ptr<const constraints::Grammar>> get(const Model& model, const std::string& source,
                                                          const constraints::GrammarOptions& options,
                                                          const std::function<bool()>& is_cancelled = {}) const;

 private:
  using Entry = std::pair<std::string, std::shared_ptr<const constraints::Grammar>>;

  std::shared_ptr<const constraints::Grammar> find(const std::string& key) const;
  void drop_oldest() const;

  size_t max_bytes_;
  mutable std::mutex mutex_;
  mutable std::deque<Entry> kept_;  // the last used first
};

// Compiled for the model's own vocabulary, or kept from one of the last calls for the model. is_cancelled: asked now
// and then while compiling; may be empty. Thread safety: any thread. Errors: those of vocabulary_of; kInvalidArgument
// with the place in the source; kCancelled.
Result<std::shared_ptr<const constraints::Grammar>> compiled_grammar(const Model& model, const std::string& source,
                                                                     const constraints::GrammarOptions& options,
                                                                     const std::function<bool()>& is_cancelled = {});

// nullptr: none is asked for. Errors: also kInvalidArgument where several are.
Result<std::shared_ptr<const constraints::Grammar>> compiled_grammar(const Model& model, const GrammarRequest& request);

}  // namespace mote
