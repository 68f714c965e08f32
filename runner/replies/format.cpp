#include "runner/replies/format.h"

#include <algorithm>

#include "runner/replies/text.h"

namespace mote::reply {
namespace {

std::string_view without_end(std::string_view text) {
  const size_t last = text.find_last_not_of(kWhiteSpace);
  return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

}  // namespace

const Format* find_format(std::string_view name) {
  for (const Format& format : formats()) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

const Format& recognise_format(std::string_view chat_template) {
  for (const Format& format : formats()) {
    const auto is_there = [&](std::string_view sign) { return chat_template.find(sign) != std::string_view::npos; };
    if (std::all_of(format.signs.begin(), format.signs.end(), is_there)) return format;
  }
  return formats().back();
}

Beginning beginning_after(const Format& format, std::string_view prompt) {
  prompt = without_end(prompt);
  for (const Rule& rule : format.reasoning) {
    const std::string_view mark = without_end(rule.mark);
    const bool is_mark = rule.mark != kAny && rule.mark != kComplete && !mark.empty();
    if (!is_mark || !prompt.ends_with(mark)) continue;
    if (rule.to == State::kReasoning || rule.from == State::kReasoning) return {rule.to, true};
  }
  return {format.start, false};
}

}  // namespace mote::reply
