// What fuzz targets do with their input: read it, and use what could be read.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace mote::test {

using Input = std::span<const std::byte>;

struct Target {
  const char* name;
  void (*run)(Input);  // returns normally for any bytes
  std::vector<std::string> (*seeds)();
};
// Those of the library that the program is linked with.
const std::vector<Target>& fuzz_targets();

}  // namespace mote::test
