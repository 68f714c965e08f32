#include "runner/python/bindings.h"
#include "runner/python/cancellation.h"

namespace mote::python {
namespace {

const char* name_of(mote_chat_event_kind kind) {
  switch (kind) {
    case MOTE_CHAT_CONTENT: return "content";
    case MOTE_CHAT_REASONING: return "reasoning";
    case MOTE_CHAT_CALL_BEGIN: return "tool_call_begin";
    case MOTE_CHAT_CALL_ARGUMENTS: return "tool_call_arguments";
    case MOTE_CHAT_CALL_END: return "tool_call_end";
    case MOTE_CHAT_CALL_DISCARDED: return "tool_call_discarded";
    default: return nullptr;  // nothing to tell
  }
}

// Calls take turns.
class Chat {
 public:
  explicit Chat(const Model& model) {
    mote_chat* chat = nullptr;
    check([&](mote_error* error) { return mote_chat_open(model.handle().get(), &chat, error); });
    handle_.reset(chat);
  }

  void set(mote_chat_field field, const std::string& text) {
    check_without_gil([&](mote_error* error) {
      const std::lock_guard lock(mutex_);
      return mote_chat_set(get(), field, text.data(), text.size(), error);
    });
  }

  std::vector<int32_t> prompt(py::object is_cancelled) {
    Cancellation cancellation(std::move(is_cancelled));
    std::vector<int32_t> ids;
    cancellation.check_without_gil([&](mote_error* error) {
      const std::lock_guard lock(mutex_);
      size_t count = 0;
      mote_error_code code =
          mote_chat_set_is_cancelled(get(), cancellation.function(), cancellation.user_data(), error);
      if (code != MOTE_OK) return code;
      code = mote_chat_prompt(get(), nullptr, 0, &count, error);
      mote_chat_set_is_cancelled(get(), nullptr, nullptr, nullptr);
      if (code != MOTE_OK) return code;
      ids.resize(count);
      return mote_chat_prompt(get(), ids.data(), ids.size(), &count, error);
    });
    return ids;
  }

  mote_chat* get() const { return handle_.get(); }
  std::mutex& mutex() { return mutex_; }

 private:
  std::unique_ptr<mote_chat, Closer<mote_chat_close>> handle_;
  std::mutex mutex_;
};

// What a step of the model adds: its token and the events that follow from it.
struct Step {
  int32_t token_id = -1;
  float logprob = 0.0f;
  std::vector<std::pair<int32_t, float>> top_logprobs;
  mote_finish_reason finish_reason = MOTE_FINISH_NONE;
  struct Event {
    const char* kind;
    int32_t index;
    std::string text, call_id;
  };
  std::vector<Event> events;

  void take(const mote_chat_event& event) {
    if (event.token_id >= 0) {
      token_id = event.token_id;
      logprob = event.logprob;
      for (size_t i = 0; i < event.num_top_logprobs; ++i)
        top_logprobs.emplace_back(event.top_logprobs[i].id, event.top_logprobs[i].logprob);
    }
    if (event.kind == MOTE_CHAT_DONE) finish_reason = event.finish_reason;
    if (const char* kind = name_of(event.kind); kind != nullptr)
      events.push_back({kind, event.call_index, {event.text, event.text_bytes}, event.call_id});
  }

  // (token id or None, logprob, [(id, logprob), ...], finish reason or None, [(kind, call index, text, call id), ...])
  py::tuple tuple() const {
    py::list found;
    for (const Event& event : events)
      found.append(py::make_tuple(py::str(event.kind), event.index, py::str(event.text), py::str(event.call_id)));
    const py::object id = token_id < 0 ? py::object(py::none()) : py::object(py::int_(token_id));
    return py::make_tuple(id, logprob, top_logprobs, finish_reason_object(finish_reason), found);
  }
};

class ChatTurn {
 public:
  ChatTurn(Chat& chat, std::shared_ptr<Session> session, const Options& options) : session_(std::move(session)) {
    mote_chat_turn* turn = nullptr;
    check_without_gil([&, session_handle = session_->handle()](mote_error* error) {
      const std::scoped_lock lock(chat.mutex(), session_->mutex());
      return mote_chat_reply(chat.get(), session_handle.get(), options.get(), &turn, error);
    });
    handle_.reset(turn);
  }

  py::tuple next() {
    Step step;
    check_without_gil([&](mote_error* error) {
      const std::lock_guard lock(session_->mutex());
      auto event = sized<mote_chat_event>();
      do {
        const mote_error_code code = mote_chat_turn_next(handle_.get(), &event, error);
        if (code != MOTE_OK) return code;
        step.take(event);
      } while (event.num_pending > 0);
      return MOTE_OK;
    });
    return step.tuple();
  }

  void cancel() { mote_chat_turn_cancel(handle_.get()); }

  void stop() {
    check_without_gil([&](mote_error* error) {
      const std::lock_guard lock(session_->mutex());
      return mote_chat_turn_stop(handle_.get(), error);
    });
  }

  py::str message() {
    char* text = nullptr;
    check_without_gil([&](mote_error* error) {
      const std::lock_guard lock(session_->mutex());
      return mote_chat_turn_message(handle_.get(), &text, error);
    });
    const std::unique_ptr<char, Closer<mote_string_free>> owned(text);
    return py::str(text);
  }

  py::dict statistics() {
    auto of_chat = sized<mote_chat_statistics>();
    auto of_generation = sized<mote_statistics>();
    check_without_gil([&](mote_error* error) {
      const std::lock_guard lock(session_->mutex());
      return mote_chat_turn_statistics(handle_.get(), &of_chat, &of_generation, error);
    });
    py::dict result = statistics_dict(of_generation);
    result["kept_tokens"] = of_chat.kept_tokens;
    result["forgotten_tokens"] = of_chat.forgotten_tokens;
    return result;
  }

 private:
  std::shared_ptr<Session> session_;
  std::unique_ptr<mote_chat_turn, Closer<mote_chat_turn_close>> handle_;
};

}  // namespace

void bind_chat_turn(py::module_& module) {
  py::class_<Chat>(module, "Chat")
      .def(py::init<const Model&>(), py::arg("model"))
      .def(
          "set",
          [](Chat& chat, int32_t field, const std::string& text) {
            chat.set(static_cast<mote_chat_field>(field), text);
          },
          py::arg("field"), py::arg("text"))
      .def("prompt", &Chat::prompt, py::arg("is_cancelled") = py::none());
  py::class_<ChatTurn>(module, "ChatTurn")
      .def(py::init<Chat&, std::shared_ptr<Session>, const Options&>(), py::arg("chat"), py::arg("session"),
           py::arg("options"))
      .def("next", &ChatTurn::next)
      .def("cancel", &ChatTurn::cancel)
      .def("stop", &ChatTurn::stop)
      .def("message", &ChatTurn::message)
      .def("statistics", &ChatTurn::statistics);
  py::dict fields;
  fields["messages"] = static_cast<int>(MOTE_CHAT_MESSAGES);
  fields["tools"] = static_cast<int>(MOTE_CHAT_TOOLS);
  fields["documents"] = static_cast<int>(MOTE_CHAT_DOCUMENTS);
  fields["variables"] = static_cast<int>(MOTE_CHAT_VARIABLES);
  fields["chat_template"] = static_cast<int>(MOTE_CHAT_TEMPLATE);
  fields["continue_final_message"] = static_cast<int>(MOTE_CHAT_CONTINUE_FINAL_MESSAGE);
  fields["tool_choice"] = static_cast<int>(MOTE_CHAT_TOOL_CHOICE);
  fields["response_format"] = static_cast<int>(MOTE_CHAT_RESPONSE_FORMAT);
  module.attr("CHAT_FIELDS") = fields;
}

}  // namespace mote::python
