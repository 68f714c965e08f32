// Files that are a few words long.
#pragma once

#include <string>

namespace mote {

// The text of a file below /sys, or of one that Mote has written itself, up to 128 KiB of it; empty: it cannot be read.
// Streams of the C++ library would bring its languages into every program that is linked without a shared one: some
// hundred kB.
std::string text_of_small_file(const std::string& path);
// What stands before the first white space.
std::string first_word_of_file(const std::string& path);

}  // namespace mote
