// Texts of Java, which are UTF-16 and may hold NULs and halves of pairs, as UTF-8, and back.
#pragma once

#include <jni.h>

#include <string>
#include <string_view>

namespace mote::java {

// A half of a pair becomes U+FFFD.
std::string utf8_of(std::u16string_view text);
// Ill-formed bytes become U+FFFD.
std::u16string utf16_of(std::string_view text);

}  // namespace mote::java
