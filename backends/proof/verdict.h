// What was found out when a device was first tried with a file, and where it is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/kept_file.h"

namespace mote::proof {

// trying: a process began to, and has not come to an end
enum class State : uint8_t { unknown, trying, works, fails };

// A text that begins with a state's name and a blank, which take_state takes away. Nothing: it begins otherwise.
std::string_view name_of(State state);
std::optional<State> take_state(std::string_view* text);
// A number with a blank or an end of line behind it.
bool take_number(std::string_view* text, uint32_t* number);
bool take_number(std::string_view* text, uint64_t* number);

// Errors: kUnsupportedBackend where the device was tried with a file and failed. num_begun: processes that did not come
// to an end
Status check_tried(State state, uint32_t num_begun, const std::string& reason, const KeptFile& file,
                   const std::string& device);

std::string milliseconds(uint64_t ns);
// Why the CPU should be preferred to a device that takes own_ns a token; 0: not measured. Empty: it should not.
std::string why_slower(const std::string& device, uint64_t own_ns, uint64_t cpu_ns);

// What keep_text was given for that file, by this process or another. Nothing: there is none that can be read.
std::optional<std::string> read_text(const KeptFile& file, const char* backend);
// is_settled: nothing will change it, so that the process knows it even where nothing can be kept
void keep_text(const KeptFile& file, std::string text, bool is_settled, const char* backend);

// For backends that work or do not, as a whole.
struct Verdict {
  State state = State::unknown;
  uint32_t num_begun = 0;           // of processes that did not come to an end
  uint64_t own_ns = 0, cpu_ns = 0;  // a token; 0: not measured
  std::string note{};               // of what works, for people: one line
  std::string reason{};             // of a failure

  bool operator==(const Verdict&) const = default;
  // What was found out, for people; empty: it has not been tried.
  std::string text_for(const std::string& device) const;
};

std::string to_text(const Verdict& verdict);
// Nothing: the text is not what to_text gives.
std::optional<Verdict> parse_verdict(std::string_view text);

}  // namespace mote::proof
