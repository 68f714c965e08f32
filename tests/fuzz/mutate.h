// Random damage to .mote files, by bytes and by fields.
#pragma once

#include <cstddef>
#include <optional>
#include <random>

#include "tests/runner/program/program_builder.h"

namespace mote::test {

using Random = std::mt19937_64;

// A number in [0, count); count > 0.
size_t below(Random& random, size_t count);

// Changes a field of the places of weights in an asset.
void change_asset(fb::AssetT& asset, Random& random);

// Changes bytes: bit flips, byte sets, edge values, truncation, runs of zeros, copies from elsewhere. Mostly in the
// header and the program. Half the time the program's checksum is made right again, so that the damage reaches the
// validator.
Bytes mutate_bytes(Bytes file, Random& random);

// A file whose program is a sound flatbuffer, taken apart for changes of fields.
class Fields {
 public:
  // Nothing if the file cannot be taken apart.
  static std::optional<Fields> of(const Bytes& file);
  // The file again, with one to three fields changed.
  Bytes mutate(Random& random) const;

 private:
  Bytes file_;     // laid out with room in front of the segments
  Bytes program_;  // its flatbuffer
  size_t first_segment_ = 0;
};

}  // namespace mote::test
