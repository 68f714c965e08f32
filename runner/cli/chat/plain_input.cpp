#include <array>
#include <cstdio>

#include "runner/cli/chat/input.h"
#include "runner/cli/system.h"

namespace mote::cli {
namespace {

class PlainInput : public Input {
 public:
  PlainInput(int descriptor, bool shows_prompt) : descriptor_(descriptor), shows_prompt_(shows_prompt) {}

  InputLine read_line(const std::string& prompt) override {
    if (shows_prompt_) {
      std::fputs(prompt.c_str(), stderr);
      std::fflush(stderr);
    }
    while (true) {
      const size_t end = held_.find('\n', searched_);
      if (end != std::string::npos) return take_line(end);
      searched_ = held_.size();
      std::array<char, 65536> buffer{};
      const InputBytes read = read_input(descriptor_, buffer);
      if (read.is_interrupted) {
        if (shows_prompt_) std::fputc('\n', stderr);
        return {InputEvent::kInterrupt, ""};
      }
      if (read.count == 0) return take_rest();
      held_.append(buffer.data(), read.count);
    }
  }

 private:
  InputLine take_line(size_t end) {
    InputLine line{InputEvent::kLine, held_.substr(0, end)};
    held_.erase(0, end + 1);
    searched_ = 0;
    if (line.text.ends_with('\r')) line.text.pop_back();
    return line;
  }

  // The last line may have no end.
  InputLine take_rest() {
    if (held_.empty()) return {};
    InputLine line{InputEvent::kLine, std::move(held_)};
    held_.clear();
    searched_ = 0;
    return line;
  }

  const int descriptor_;
  const bool shows_prompt_;
  std::string held_;
  size_t searched_ = 0;
};

}  // namespace

std::unique_ptr<Input> make_plain_input(int descriptor, bool shows_prompt) {
  return std::make_unique<PlainInput>(descriptor, shows_prompt);
}

}  // namespace mote::cli
