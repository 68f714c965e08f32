// Replies of a model: turns of the library's chats in one session, which keeps what it has read.
#pragma once

#include "runner/cli/chat/responder.h"
#include "runner/cli/option_flags.h"

namespace mote::cli {

class ModelResponder : public Responder {
 public:
  // options: of the model and its session. Errors: InputError if the file has no chat template or no tokenizer, those
  // of opening.
  ModelResponder(const std::string& path, const Options& options);

  Reply respond(const Conversation& conversation, const Settings& settings, const Show& show) override;
  void validate(const Settings& settings) override;
  std::vector<Settings::Line> lines(const Settings& settings) const override { return settings.lines(model_); }
  std::string move_to(const std::string& backend) override;
  bool reads_variable(const std::string& name) const override;

  const Model& model() const { return model_; }
  int64_t context_length() const;

 private:
  void use_draft_model(const std::string& path);

  std::string path_;
  Model model_;
  std::string chat_template_;
  Session session_;
  std::string draft_model_;  // of session_; "": none
};

}  // namespace mote::cli
