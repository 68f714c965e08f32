// The namespace of the instructions that a file is compiled for.
#pragma once

#ifndef MOTE_ISA
#define MOTE_ISA portable
#endif

#define MOTE_INLINE [[gnu::always_inline]] inline

#define MOTE_TEXT_INNER(a) #a
#define MOTE_TEXT(a) MOTE_TEXT_INNER(a)
#define MOTE_ISA_NAME MOTE_TEXT(MOTE_ISA)
