#include <array>

#include "runner/cli/system.h"

namespace mote::cli {

std::string read_standard_input() {
  std::string text;
  std::array<char, 65536> buffer{};
  constexpr int kStandardInput = 0;
  for (InputBytes read; (read = read_input(kStandardInput, buffer)).count > 0;) text.append(buffer.data(), read.count);
  return text;
}

}  // namespace mote::cli
