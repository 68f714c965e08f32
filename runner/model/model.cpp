#include "runner/model/model.h"

#include <algorithm>

#include "base/parts.h"
#include "tokenizer/compile/compile.h"

namespace mote {

Status check_tokenizer_json(std::string_view json) {
  MOTE_REQUIRE_PART("tokenizer.compile", Code::kInvalidTokenizer);
  return tokenizer::compile_json(json).status();
}

Result<std::shared_ptr<const Model>> Model::open(const Source& source, const OpenOptions& options) {
  // A file that is read takes about as long for that as for the rest. Weights in a file of their own are most of it.
  const LoadMode mapped_mode = options.sigbus_handler ? LoadMode::kMap : LoadMode::kMapUnguarded;
  const LoadMode mode = options.mmap ? mapped_mode : LoadMode::kRead;
  const double read = options.mmap ? 0.0 : 0.5;
  const Progress whole = never_back(options.progress);
  MOTE_RETURN_IF_ERROR(report(whole, 0.0));
  MOTE_ASSIGN(Mapped mapped, map(source, mode, part_of(whole, 0.0, read)));
  MOTE_ASSIGN(
      Verified verified,
      verify(std::move(mapped), {.path = options.weights_file, .mode = mode, .progress = part_of(whole, 0.0, read)}));
  MOTE_ASSIGN(Chosen chosen, bind_target(std::move(verified), options.backend,
                                         {.cache_dir = options.cache_dir,
                                          .guards_pages = options.sigbus_handler,
                                          .tune = options.tune,
                                          .progress = part_of(whole, read, 1.0)}));
  const std::shared_ptr<const Model> model(
      new Model(std::move(chosen), {.cache_dir = options.cache_dir, .guards_pages = options.sigbus_handler}));
  MOTE_RETURN_IF_ERROR(model->bound()->file().check_readable());
  if constexpr (!kPartsLeftOut.empty()) MOTE_RETURN_IF_ERROR(model->tokenizer().status());  // may take a part
  MOTE_RETURN_IF_ERROR(report(whole, 1.0));
  return model;
}

Model::Model(Chosen chosen, BindOptions bind_options)
    : bound_(std::move(chosen.bound)),
      bind_options_(std::move(bind_options)),
      targets_{{std::string(bound_->target()), bound_}},
      passed_over_(std::move(chosen.passed_over)) {
  const std::span<const std::byte> text = bound_->verified().segment(fb::SegmentKind::chat_template);
  chat_template_.assign(reinterpret_cast<const char*>(text.data()), text.size());
}

Result<std::shared_ptr<const Bound>> Model::bound_for(std::string_view target) const {
  const std::lock_guard lock(targets_mutex_);
  const auto known = targets_.find(target);
  if (known != targets_.end() && !known->second->is_lost()) return known->second;
  MOTE_ASSIGN(auto bound, bind(bound_->shared_verified(), target, bind_options_));
  targets_[std::string(target)] = bound;
  return bound;
}

std::span<const int32_t> Model::eos_token_ids() const {
  const auto& ids = *program().eos_token_ids();
  return {ids.data(), ids.size()};
}

bool Model::is_eos(int32_t id) const {
  const std::span<const int32_t> ids = eos_token_ids();
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

Status Model::require_generation() const {
  MOTE_REQUIRE(bound_->has_method("decode"), Code::kInvalidArgument,
               "%s gives embeddings only: export the checkpoint with --no-embed for a file that generates text",
               path().c_str());
  return {};
}

Result<const Tokenizer*> Model::tokenizer() const {
  if (!has_tokenizer()) return nullptr;
  MOTE_ASSIGN(const auto opened, derived<Tokenizer>([this]() -> Result<std::shared_ptr<const Tokenizer>> {
                MOTE_ASSIGN(std::vector<std::byte> bytes, bound_->verified().copy(fb::SegmentKind::tokenizer));
                MOTE_ASSIGN(Tokenizer own, Tokenizer::open(std::move(bytes)));
                return std::make_shared<const Tokenizer>(std::move(own));
              }));
  return opened.get();
}

Result<const Tokenizer*> Model::require_tokenizer() const {
  MOTE_REQUIRE(has_tokenizer(), Code::kInvalidArgument, "%s has no tokenizer: give token ids instead of text",
               path().c_str());
  return tokenizer();
}

Status Model::check_segments() const { return mote::check_segments(bound_->verified()); }

}  // namespace mote
