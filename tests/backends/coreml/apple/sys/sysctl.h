// What backends/assets uses of Apple's sys/sysctl.h.
#pragma once

#include <stddef.h>

extern "C" int sysctlbyname(const char* name, void* value, size_t* size, void* new_value, size_t new_size);
