// What was said, as chat templates take it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace mote::cli {

using Json = nlohmann::ordered_json;

// Text of any bytes as JSON: what is no UTF-8 becomes U+FFFD.
std::string dump(const Json& value, int indent = -1);

class Conversation {
 public:
  std::string system;               // "": none
  Json tools;                       // a list of schemas, or null
  Json variables = Json::object();  // of the chat template, such as enable_thinking
  Json messages = Json::array();    // without the system message

  void add_user(const std::string& text);
  void add_reply(Json message) { messages.push_back(std::move(message)); }
  // The calls of the last reply that have no result yet.
  Json open_calls() const;
  // The result of the first open call. False: none is open.
  bool add_result(const std::string& text);

  // Takes back the last message of the user and all that followed. Returns it; "" if there is none.
  std::string undo();
  // Takes back the last reply, so that another can be given. False: there is nothing to reply to.
  bool prepare_retry();

  // The system message and the others, as a chat template takes them.
  Json all_messages() const;
};

}  // namespace mote::cli
