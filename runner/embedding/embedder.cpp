#include "runner/embedding/embedder.h"

#include <algorithm>

#include "runner/program/cpus.h"
#include "runner/program/token_rows.h"
#include "runner/session/session.h"

namespace mote {
namespace {

constexpr size_t kMostTexts = 64;  // in one call, each with states of its own
constexpr int64_t kDefaultCallTokens = 256;

std::string names_of(const EmbeddingConfig& config) {
  std::string names;
  for (const auto& [name, text] : config.prompts) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "the file has no prompts" : "must be one of " + names;
}

}  // namespace

Result<std::unique_ptr<Embedder>> Embedder::open(std::shared_ptr<const Model> model, const SessionOptions& options) {
  MOTE_ASSIGN(EmbeddingConfig config, embedding_config(*model));
  std::unique_ptr<Embedder> embedder(new Embedder(std::move(model), std::move(config)));
  MOTE_RETURN_IF_ERROR(embedder->prepare(options));
  return embedder;
}

Status Embedder::prepare(const SessionOptions& options) {
  options_ = options;
  MOTE_REQUIRE(options.adapters.empty(), Code::kInvalidArgument, "adapters = %s: embeddings take none",
               options.adapters.front().c_str());
  MOTE_REQUIRE(options.context_length >= 0 && options.context_length <= config_.max_tokens, Code::kInvalidArgument,
               "context_length = %lld: must be 1..%lld, or 0 for as many tokens as the model takes",
               static_cast<long long>(options.context_length), static_cast<long long>(config_.max_tokens));
  MOTE_REQUIRE(options.prefill_chunk >= 0 && options.prefill_chunk <= kMaxTokens, Code::kInvalidArgument,
               "prefill_chunk = %lld: must be 1..%lld, or 0 for the default",
               static_cast<long long>(options.prefill_chunk), static_cast<long long>(kMaxTokens));
  MOTE_REQUIRE(options.threads >= 0 && options.threads <= kMaxThreads, Code::kInvalidArgument,
               "threads = %d: must be 1..%d, or 0 for the default", options.threads, kMaxThreads);
  if (options.context_length > 0) config_.max_tokens = options.context_length;
  const std::shared_ptr<const Bound>& bound = model_->bound();
  MOTE_ASSIGN(method_, bound->method_index(kEmbed));
  const int64_t longest = std::min<int64_t>(bound->method(method_).max_tokens(), kMaxTokens);
  call_tokens_ = std::min(options.prefill_chunk == 0 ? kDefaultCallTokens : options.prefill_chunk, longest);
  if (config_.bidirectional) config_.max_tokens = std::min(config_.max_tokens, longest);
  can_compute_together_ = check_token_rows(*bound, method_).ok();
  const int64_t most = config_.bidirectional ? std::max(call_tokens_, config_.max_tokens) : call_tokens_;
  MOTE_ASSIGN(engine_, make_engine(bound, {options.threads, options.cpus, options.priority, most}));
  return {};
}

Result<int64_t> Embedder::dimensions(const EmbedOptions& options) const {
  MOTE_REQUIRE(options.dimensions >= 0 && options.dimensions <= config_.dimensions, Code::kInvalidArgument,
               "dimensions = %lld: must be 1..%lld, or 0 for all", static_cast<long long>(options.dimensions),
               static_cast<long long>(config_.dimensions));
  return options.dimensions == 0 ? config_.dimensions : options.dimensions;
}

Result<std::string_view> Embedder::prompt_of(const EmbedOptions& options) const {
  MOTE_REQUIRE(!options.has_prompt || options.prompt_name.empty(), Code::kInvalidArgument,
               "prompt and prompt_name: only one of them can be given");
  if (options.has_prompt) return options.prompt;
  const std::string_view name = options.prompt_name.empty() ? config_.default_prompt_name : options.prompt_name;
  if (name.empty()) return std::string_view();
  const auto found = config_.prompts.find(name);
  MOTE_REQUIRE(found != config_.prompts.end(), Code::kInvalidArgument, "prompt_name = '%s': %s",
               std::string(name.substr(0, 60)).c_str(), names_of(config_).c_str());
  return std::string_view(found->second);
}

// The tokens that the tokenizer puts around a text stay where its end is cut off.
Result<std::vector<int32_t>> Embedder::shortened(const std::string& text, const EmbedOptions& options) const {
  MOTE_ASSIGN(const Tokenizer* tokenizer, model_->require_tokenizer());
  MOTE_ASSIGN(Encoding encoding,
              tokenizer->encode_with_offsets(text, {.parse_special = options.parse_special}, OffsetUnit::kBytes));
  const auto is_put_around = [](const tokenizer::Origin& origin) { return origin.begin == 0 && origin.end == 0; };
  const auto last = std::find_if_not(encoding.offsets.rbegin(), encoding.offsets.rend(), is_put_around);
  const auto behind = last - encoding.offsets.rbegin();
  const auto most = static_cast<ptrdiff_t>(config_.max_tokens);
  std::vector<int32_t>& ids = encoding.ids;
  const auto kept = std::max<ptrdiff_t>(most - behind, 0);
  ids.erase(ids.begin() + kept, ids.end() - behind);
  ids.resize(static_cast<size_t>(std::min<ptrdiff_t>(most, std::ssize(ids))));
  return std::move(ids);
}

Result<Embedder::Text> Embedder::encode(std::string_view prompt, std::string_view text,
                                        const EmbedOptions& options) const {
  MOTE_ASSIGN(const Tokenizer* tokenizer, model_->require_tokenizer());
  const EncodeOptions how{.parse_special = options.parse_special};
  const std::string whole = std::string(prompt) + std::string(text);
  Text result;
  MOTE_ASSIGN(result.ids, tokenizer->encode(whole, how));
  if (!config_.include_prompt && !prompt.empty()) {
    MOTE_ASSIGN(const std::vector<int32_t> ids, tokenizer->encode(prompt, how));
    const bool has_end = !ids.empty() && tokenizer->is_special(ids.back());
    result.num_skipped = std::ssize(ids) - (has_end ? 1 : 0);
  }
  if (options.cut_to_fit && std::ssize(result.ids) > config_.max_tokens) {
    MOTE_ASSIGN(result.ids, shortened(whole, options));
  }
  return result;
}

Result<Embedder::Text> Embedder::read(const EmbedInput& input, std::string_view prompt,
                                      const EmbedOptions& options) const {
  Text text;
  if (input.is_text) {
    MOTE_ASSIGN(text, encode(prompt, input.text, options));
  } else {
    MOTE_REQUIRE(!options.has_prompt && options.prompt_name.empty(), Code::kInvalidArgument,
                 "a prompt can be put before a text only, not before token ids");
    text.ids.assign(input.ids.begin(), input.ids.end());
    if (options.cut_to_fit && std::ssize(text.ids) > config_.max_tokens)
      text.ids.resize(static_cast<size_t>(config_.max_tokens));
  }
  MOTE_REQUIRE(std::ssize(text.ids) > text.num_skipped, Code::kInvalidArgument, "it has no tokens");
  MOTE_REQUIRE(std::ssize(text.ids) <= config_.max_tokens, Code::kContextFull,
               "its %zu tokens do not fit: must be at most %lld", text.ids.size(),
               static_cast<long long>(config_.max_tokens));
  for (const int32_t id : text.ids) {
    MOTE_REQUIRE(id >= 0 && id < model_->vocab_size(), Code::kInvalidArgument,
                 "token id %d: must be 0..%d, below the vocabulary size", id, model_->vocab_size() - 1);
  }
  return text;
}

// The pieces of the next call, from the token `first` of `text` on; moves both behind them.
std::vector<Embedder::Piece> Embedder::next_call(std::span<const Text> texts, size_t& text, size_t& first) const {
  std::vector<Piece> pieces;
  const size_t most_texts = can_compute_together_ ? kMostTexts : 1;
  auto room = static_cast<size_t>(call_tokens_);
  while (text < texts.size() && room > 0 && pieces.size() < most_texts) {
    const size_t left = texts[text].ids.size() - first;
    const bool is_whole = left <= room;
    if (config_.bidirectional && !is_whole && !pieces.empty()) break;
    const size_t count = is_whole || config_.bidirectional ? left : room;
    pieces.push_back({text, first, count, pieces.size()});
    room -= std::min(room, count);
    first = count == left ? 0 : first + count;
    text += count == left ? 1 : 0;
  }
  return pieces;
}

Status Embedder::begin(const Text& text, size_t slot) {
  const auto needed = static_cast<int64_t>(text.ids.size());
  if (slot >= slots_.size() || slots_[slot].capacity < needed) {
    const int64_t capacity = (needed + kKvPageSlots - 1) / kKvPageSlots * kKvPageSlots;
    MOTE_ASSIGN(StateMemory states,
                StateMemory::allocate(*model_->bound(), {capacity, call_tokens_, options_.kv_dtype}));
    if (slot >= slots_.size()) {
      slots_.push_back({std::move(states), capacity});
    } else {
      slots_[slot].states = std::move(states);
      slots_[slot].capacity = capacity;
    }
  }
  slots_[slot].states.clear();
  slots_[slot].pooled.start(config_.pooling, static_cast<size_t>(config_.dimensions), text.num_skipped);
  return {};
}

Status Embedder::compute(std::span<const Text> texts, std::span<const Piece> pieces) {
  Executor& executor = *engine_.executor;
  size_t tokens = 0;
  for (const Piece& piece : pieces) tokens += piece.count;
  MOTE_RETURN_IF_ERROR(executor.prepare(method_, static_cast<int64_t>(tokens)));
  const std::span<int64_t> input_ids = executor.input(method_, 0), position_ids = executor.input(method_, 1);
  std::vector<SequenceStates> sequences;
  size_t at = 0;
  for (const Piece& piece : pieces) {
    if (piece.first == 0) MOTE_RETURN_IF_ERROR(begin(texts[piece.text], piece.slot));
  }
  for (const Piece& piece : pieces) {
    StateMemory& states = slots_[piece.slot].states;
    MOTE_RETURN_IF_ERROR(states.reserve(static_cast<int64_t>(piece.first), static_cast<int64_t>(piece.count)));
    sequences.push_back({static_cast<int64_t>(piece.count), states.kv_caches(), states.recurrent_states()});
    for (size_t i = piece.first; i < piece.first + piece.count; ++i, ++at) {
      input_ids[at] = texts[piece.text].ids[i];
      position_ids[at] = static_cast<int64_t>(i);
    }
  }
  const ScopedBinding binding(engine_.cpus);
  MOTE_RETURN_IF_ERROR(executor.run_together(method_, sequences, cancelled_));
  const std::span<const float> rows = executor.output(method_, 0);
  const auto width = static_cast<size_t>(config_.dimensions);
  at = 0;
  for (const Piece& piece : pieces) {
    for (size_t i = 0; i < piece.count; ++i, ++at) slots_[piece.slot].pooled.add(rows.subspan(at * width, width));
  }
  return {};
}

Status Embedder::embed(std::span<const EmbedInput> inputs, const EmbedOptions& options, float* to,
                       std::span<int64_t> num_tokens) {
  MOTE_RETURN_IF_ERROR(model_->bound()->file().check_unchanged());
  MOTE_ASSIGN(const int64_t width, dimensions(options));
  MOTE_ASSIGN(const std::string_view prompt, prompt_of(options));
  std::vector<Text> texts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto text = read(inputs[i], prompt, options);
    if (!text.ok()) return {text.status().code(), format("input %zu: %s", i, text.status().message().c_str())};
    if (!num_tokens.empty()) num_tokens[i] = std::ssize(text->ids);
    texts.push_back(std::move(*text));
  }
  size_t text = 0, first = 0;
  Status status;
  while (text < texts.size() && status.ok()) {
    std::vector<Piece> pieces = next_call(texts, text, first);
    status = compute(texts, pieces);
    for (const Piece& piece : pieces) {
      if (!status.ok() || piece.first + piece.count < texts[piece.text].ids.size()) continue;
      slots_[piece.slot].pooled.write(options.normalized,
                                      {to + piece.text * static_cast<size_t>(width), static_cast<size_t>(width)});
    }
    // The text that goes on is the first of the next call.
    if (first > 0 && pieces.back().slot > 0) std::swap(slots_[0], slots_[pieces.back().slot]);
  }
  if (status.code() == Code::kCancelled) cancelled_.store(false);
  for (Slot& slot : slots_) slot.states.clear();
  return status;
}

}  // namespace mote
