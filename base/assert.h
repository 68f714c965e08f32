// Checks of what only a mistake of Mote's own can break.
#pragma once

namespace mote {

// Writes the condition and its place to stderr and aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace mote

// Debug and sanitizer builds (MOTE_ASSERTIONS) abort where the condition is false; others do not evaluate it. For what
// comes from outside there is MOTE_REQUIRE.
#if defined(MOTE_ASSERTIONS)
#define MOTE_ASSERT(condition) ((condition) ? (void)0 : ::mote::assertion_failed(#condition, __FILE__, __LINE__))
#else
#define MOTE_ASSERT(condition) ((void)sizeof((condition) ? 1 : 0))
#endif
