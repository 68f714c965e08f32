// Replies of a model: one session that keeps what it has read.
#pragma once

#include <memory>
#include <optional>

#include "runner/cli/chat/context_window.h"
#include "runner/cli/chat/responder.h"
#include "runner/cli/session_flags.h"

namespace mote::cli {

class ModelResponder : public Responder {
 public:
  // Errors: InputError if the file has no chat template or no tokenizer, those of opening.
  ModelResponder(const std::string& path, const SessionFlags& flags);

  Reply respond(const Conversation& conversation, const Settings& settings,
                const std::function<void(const mote_reply_event&)>& show) override;
  void validate(const Settings& settings) override;
  std::vector<Settings::Line> lines(const Settings& settings) const override { return settings.lines(model_); }
  bool reads_variable(const std::string& name) const override;

  const Model& model() const { return model_; }
  int64_t context_length() const { return session_info().context_length; }

 private:
  using Show = std::function<void(const mote_reply_event&)>;
  struct Turn;

  void resolve(const Settings& settings, ReplyOptions& options);
  void open_session();
  void use_draft_model(const std::string& path);
  void prepare(const Conversation& conversation, Turn& turn);
  std::vector<int32_t> fitting(const Conversation& conversation, const std::vector<int32_t>& ids);
  bool read_prompt(Turn& turn);
  void generate(Turn& turn, const Show& show);
  void measure(Turn& turn);
  std::vector<int32_t> render(const Conversation& conversation, bool add_generation_prompt, std::string* text) const;
  int64_t system_tokens(const Conversation& conversation, const std::vector<int32_t>& ids) const;
  mote_session_info session_info() const;

  std::string path_;
  SessionFlags flags_;
  bool keeps_system_;  // the first tokens that are never forgotten are those of the system message
  Model model_;
  std::string chat_template_;
  bool has_marks_ = false;  // of reasoning and calls, which may be special tokens
  std::optional<GrammarSource> grammar_source_;
  Grammar grammar_;  // of grammar_source_
  Session session_;
  std::string draft_model_;  // of session_; "": none
  ContextWindow window_;
};

}  // namespace mote::cli
