#include "runner/session/trace.h"

#include "base/json.h"

namespace mote {
namespace {

class TraceWriter {
 public:
  TraceWriter(const Session& session, const Profile& profile)
      : session_(session), bound_(session.bound()), profile_(profile) {}

  std::string write() {
    text_ =
        "{\"displayTimeUnit\": \"ms\", \"otherData\": {\"model\": " + json_string(session_.model().path()) +
        format(", \"threads\": %d, \"forgotten_calls\": %llu, \"forgotten_instructions\": %llu},\n\"traceEvents\": [\n",
               session_.num_threads(), static_cast<unsigned long long>(profile_.calls().first()),
               static_cast<unsigned long long>(profile_.events().first()));
    text_ += R"({"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "session"}})";
    for (uint64_t i = profile_.calls().first(); i < profile_.calls().num_added(); ++i) write_call(profile_.calls()[i]);
    for (uint64_t i = profile_.events().first(); i < profile_.events().num_added(); ++i)
      write_event(profile_.events()[i]);
    return std::move(text_) + "\n]}\n";
  }

 private:
  void write_times(Profile::Clock::time_point start, Profile::Clock::time_point end) {
    using Microseconds = std::chrono::duration<double, std::micro>;
    text_ += format(", \"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": %.3f, \"dur\": %.3f",
                    Microseconds(start - profile_.start()).count(), Microseconds(end - start).count());
  }

  void write_call(const Profile::Call& call) {
    text_ += ",\n{\"name\": " + json_string(bound_.method(call.method).name()->str()) + ", \"cat\": \"call\"";
    write_times(call.start, call.end);
    text_ += format(", \"args\": {\"tokens\": %lld}}", static_cast<long long>(call.tokens));
  }

  void write_event(const Profile::Event& event) {
    if (event.call_index < profile_.calls().first()) return;  // its call is forgotten
    const fb::Method& method = bound_.method(profile_.calls()[event.call_index].method);
    const fb::Instruction& instruction = *method.instructions()->Get(event.instruction);
    const std::string name = event.name != nullptr ? event.name : instruction.op()->str();
    const std::string origin = event.origin != nullptr ? event.origin : instruction.origin()->str();
    text_ += ",\n{\"name\": " + json_string(name) + ", \"cat\": \"op\"";
    write_times(event.start, event.end);
    text_ += format(", \"args\": {\"instruction\": %u, \"origin\": ", event.instruction) + json_string(origin) +
             format(", \"bytes\": %lld, \"macs\": %lld", static_cast<long long>(event.cost.bytes),
                    static_cast<long long>(event.cost.macs));
    if (event.submission > 0) text_ += format(", \"submission\": %d", event.submission);
    text_ += "}}";
  }

  const Session& session_;
  const Bound& bound_;
  const Profile& profile_;
  std::string text_;
};

}  // namespace

std::string chrome_trace(const Session& session, const Profile& profile) {
  return TraceWriter(session, profile).write();
}

}  // namespace mote
