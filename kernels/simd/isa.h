// The namespace of the instructions that a file is compiled for.
#pragma once

#ifndef MOTE_ISA
#define MOTE_ISA portable
#endif

#define MOTE_INLINE [[gnu::always_inline]] inline
#define MOTE_INLINE_LAMBDA __attribute__((always_inline))  // after a lambda's parameters

#define MOTE_TEXT_INNER(a) #a
#define MOTE_TEXT(a) MOTE_TEXT_INNER(a)
#define MOTE_ISA_NAME MOTE_TEXT(MOTE_ISA)

// Products of bytes in one or two instructions. Without them a product costs so much that reading weights for several
// tokens at once gains little: the code for every CPU has no kernels that do only that.
#if defined(__AVX2__) || defined(__ARM_FEATURE_DOTPROD)
#define MOTE_HAS_PRODUCTS
#endif

#include "kernels/machine/cpu_features.h"

namespace mote {
inline namespace MOTE_ISA {

// Builds for size: one loop where another gains little.
#if defined(MOTE_SMALL_KERNELS)
inline constexpr bool kIsSmall = true;
#else
inline constexpr bool kIsSmall = false;
#endif

// What a kernel of this file's instructions needs, and its rank in its role. Ranks are 10 apart, which leaves room for
// variants of one instruction set; that of i8mm lies between dotprod's panels and what streams, whose place nothing of
// i8mm takes.
#if defined(__AMX_INT8__)
inline constexpr CpuFeatures kNeeds = CpuFeatures(CpuFeature::kAmx) | CpuFeature::kAvx512Vnni;
inline constexpr int kRank = 40;
#elif defined(__AVX512VNNI__)
inline constexpr CpuFeatures kNeeds = CpuFeature::kAvx512Vnni;
inline constexpr int kRank = 30;
#elif defined(__AVX512BW__)
inline constexpr CpuFeatures kNeeds = CpuFeature::kAvx512;
inline constexpr int kRank = 25;
#elif defined(__AVXVNNI__)
inline constexpr CpuFeatures kNeeds = CpuFeatures(CpuFeature::kAvxVnni) | CpuFeature::kAvx2;
inline constexpr int kRank = 20;
#elif defined(__AVX2__) && defined(__FMA__)
inline constexpr CpuFeatures kNeeds = CpuFeature::kAvx2;
inline constexpr int kRank = 10;
#elif defined(__ARM_FEATURE_MATMUL_INT8)
inline constexpr CpuFeatures kNeeds = CpuFeatures(CpuFeature::kI8mm) | CpuFeature::kDotprod;
inline constexpr int kRank = 11;
#elif defined(__ARM_FEATURE_DOTPROD)
inline constexpr CpuFeatures kNeeds = CpuFeature::kDotprod;
inline constexpr int kRank = 10;
#else
inline constexpr CpuFeatures kNeeds;
inline constexpr int kRank = 0;
#endif

}  // namespace MOTE_ISA
}  // namespace mote
