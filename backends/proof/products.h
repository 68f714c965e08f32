// How long the CPU's kernels take for what a backend computes.
#pragma once

#include <cstdint>
#include <span>

#include "runner/program/delegate.h"

namespace mote::proof {

// The products of a token, in nanoseconds; 0: it cannot be told. Some of the products stand for all.
uint64_t cpu_ns_of(std::span<const DelegateProduct> products, const DelegateSource& source);

}  // namespace mote::proof
