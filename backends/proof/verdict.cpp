#include "backends/proof/verdict.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <mutex>
#include <span>

#include "base/log.h"

namespace mote::proof {
namespace {

constexpr std::array<std::string_view, 4> kStates = {"unknown", "trying", "works", "fails"};
constexpr uint64_t kMostText = 4096;     // bytes
constexpr uint32_t kMostUnfinished = 2;  // processes: one may have been ended by something else

// Of this process, by identity.
struct Known {
  std::mutex mutex;
  std::map<std::string, std::string> texts;
};
Known& known() {
  static Known made;
  return made;
}

template <typename Number> bool take(std::string_view* text, Number* number) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  if (error != std::errc()) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  const bool is_delimited = !text->empty() && (text->front() == ' ' || text->front() == '\n');
  if (is_delimited) text->remove_prefix(1);
  return is_delimited;
}

}  // namespace

std::string_view name_of(State state) { return kStates[static_cast<size_t>(state)]; }

std::optional<State> take_state(std::string_view* text) {
  const size_t length = std::min(text->find(' '), text->size());
  const auto found = std::ranges::find(kStates, text->substr(0, length));
  if (found == kStates.end() || length == text->size()) return std::nullopt;
  text->remove_prefix(length + 1);
  return static_cast<State>(found - kStates.begin());
}

bool take_number(std::string_view* text, uint32_t* number) { return take(text, number); }
bool take_number(std::string_view* text, uint64_t* number) { return take(text, number); }

Status check_tried(State state, uint32_t num_begun, const std::string& reason, const KeptFile& file,
                   const std::string& device) {
  const bool ended_badly = state == State::trying && num_begun >= kMostUnfinished;
  if (state != State::fails && !ended_badly) return {};
  const std::string why = ended_badly ? "processes that tried it did not come to an end" : reason;
  const std::string again = file.path.empty() ? "in another process" : "once " + file.path + " is deleted";
  return {Code::kUnsupportedBackend, device + " was tried with this file and failed: " + why +
                                         "; it is tried again with another driver, or " + again};
}

std::string milliseconds(uint64_t ns) { return format("%.1f ms", static_cast<double>(ns) * 1e-6); }

std::string why_slower(const std::string& device, uint64_t own_ns, uint64_t cpu_ns) {
  if (own_ns > 0 && own_ns < cpu_ns) return {};
  if (own_ns == 0 || cpu_ns == 0) return device + " is not known to be faster than the CPU for this file";
  return device + " takes " + milliseconds(own_ns) + " a token and the CPU " + milliseconds(cpu_ns) +
         ", as was measured when the file was loaded first";
}

std::optional<std::string> read_text(const KeptFile& file, const char* backend) {
  {
    const std::lock_guard lock(known().mutex);
    if (const auto found = known().texts.find(file.identity); found != known().texts.end()) return found->second;
  }
  if (file.path.empty()) return std::nullopt;
  const Result<std::vector<std::byte>> bytes = file.read(kMostText);
  if (bytes.ok()) return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (bytes.status().code() != Code::kFileNotFound)
    MOTE_LOG_LINE(kInfo, "%s: the device is tried anew: %s", backend, bytes.status().message().c_str());
  return std::nullopt;
}

void keep_text(const KeptFile& file, std::string text, bool is_settled, const char* backend) {
  text.resize(std::min<size_t>(text.size(), kMostText));
  if (is_settled) {
    const std::lock_guard lock(known().mutex);
    known().texts[file.identity] = text;
  }
  if (file.path.empty()) return;
  const Status written = file.write(std::as_bytes(std::span(text)));
  if (!written.ok()) MOTE_LOG_LINE(kInfo, "%s: the verdict is not kept: %s", backend, written.message().c_str());
}

std::string Verdict::text_for(const std::string& device) const {
  if (state != State::works) return {};
  return device + ", tried with this file" + (own_ns > 0 ? ": " + milliseconds(own_ns) + " a token" : "") +
         (note.empty() ? "" : "; " + note);
}

std::string to_text(const Verdict& verdict) {
  return std::string(name_of(verdict.state)) +
         format(" %u %llu %llu\n", verdict.num_begun, static_cast<unsigned long long>(verdict.own_ns),
                static_cast<unsigned long long>(verdict.cpu_ns)) +
         verdict.note + "\n" + verdict.reason;
}

std::optional<Verdict> parse_verdict(std::string_view text) {
  Verdict verdict;
  const std::optional<State> state = take_state(&text);
  if (!state) return std::nullopt;
  verdict.state = *state;
  const bool has_numbers = take_number(&text, &verdict.num_begun) && take_number(&text, &verdict.own_ns) &&
                           take_number(&text, &verdict.cpu_ns);
  const size_t end = text.find('\n');
  if (!has_numbers || end == std::string_view::npos) return std::nullopt;
  verdict.note = text.substr(0, end);
  verdict.reason = text.substr(end + 1);
  return verdict;
}

}  // namespace mote::proof
