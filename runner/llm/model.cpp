#include "runner/llm/model.h"

#include <algorithm>

#include "tokenizer/compile/compile.h"

namespace mote {
namespace {

Status in_file(const std::string& path, const Status& status) {
  return {status.code(), path + ": " + status.message()};
}

}  // namespace

Status check_tokenizer_json(std::string_view json) { return tokenizer::compile_json(json).status(); }

Result<std::shared_ptr<const Model>> Model::open(const std::string& path, LoadMode mode, std::string_view backend) {
  MOTE_ASSIGN(Mapped mapped, map(path, mode));
  MOTE_ASSIGN(Verified verified, verify(std::move(mapped)));
  MOTE_ASSIGN(Chosen chosen, bind_lowering(std::move(verified), backend));
  const std::shared_ptr<Model> model(new Model(std::move(chosen)));
  auto config = parse_generation_config(model->program().generation_config()->string_view(), model->eos_token_ids());
  if (!config.ok()) return in_file(path, config.status());
  model->generation_config_ = *std::move(config);
  return std::shared_ptr<const Model>(model);
}

std::string_view Model::segment_text(fb::SegmentKind kind) const {
  const std::span<const std::byte> bytes = bound_->verified().segment(kind);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const int32_t> Model::eos_token_ids() const {
  const auto& ids = *program().eos_token_ids();
  return {ids.data(), ids.size()};
}

bool Model::is_eos(int32_t id) const {
  const std::span<const int32_t> ids = eos_token_ids();
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

Result<const Tokenizer*> Model::tokenizer() const {
  if (!has_tokenizer()) return nullptr;
  std::call_once(tokenizer_once_, [this] { 
    tokenizer_ = Tokenizer::open(bound_->verified().segment(fb::SegmentKind::tokenizer));
  });
  if (!tokenizer_->ok()) return in_file(path(), tokenizer_->status());
  return &**tokenizer_;
}

Result<const Tokenizer*> Model::require_tokenizer() const {
  MOTE_REQUIRE(has_tokenizer(), Code::kInvalidArgument, "%s has no tokenizer: give token ids instead of text", path().c_str());
  return tokenizer();
}

Result<std::shared_ptr<const constraints::Vocabulary>> Model::make_vocabulary() const {
  MOTE_ASSIGN(const Tokenizer* own, require_tokenizer());
  MOTE_ASSIGN(std::vector<std::string> texts, own->token_texts());
  texts.resize(static_cast<size_t>(vocab_size()));  // ids beyond the tokenizer's are tokens of nothing
  return constraints::Vocabulary::make(std::move(texts), {eos_token_ids().begin(), eos_token_ids().end()});
}

Result<std::shared_ptr<const constraints::Vocabulary>> Model::vocabulary() const {
  std::call_once(vocabulary_once_, [this] { vocabulary_.emplace(make_vocabulary()); });
  return *vocabulary_;
}

Result<const ChatTemplate*> Model::require_chat_template() const {
  MOTE_REQUIRE(!chat_template().empty(), Code::kInvalidArgument, "%s has no chat template: give a prompt instead of messages", path().c_str());
  std::call_once(chat_template_once_, [this] { chat_template_.emplace(ChatTemplate::parse(chat_template())); });
  if (!chat_template_->ok()) {
    const Status& status = chat_template_->status();
    return Status(status.code(), path() + ": its chat template is not valid: " + status.message());
  }
  return (**chat_template_).get();
}

Status Model::check_segments() const { return mote::check_segments(bound_->verified()); }

}  // namespace mote
