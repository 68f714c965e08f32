// Of VK_EXT_layer_settings what llama.cpp names when it makes an instance, for Vulkan's headers before 1.3.272, such as
// Debian 12's, which lack it. Drivers and the loader pass over structures that they do not know.
#pragma once

#if defined(__cplusplus) && __has_include(<vulkan/vulkan_core.h>)
#include <vulkan/vulkan_core.h>
#ifndef VK_EXT_layer_settings
#include <cstdint>
#include <vector>

namespace vk {

enum class LayerSettingTypeEXT : int32_t { eBool32 = 0 };

struct LayerSettingEXT {
  const char* layer;
  const char* setting;
  LayerSettingTypeEXT type;
  uint32_t count;
  const void* values;
};

struct LayerSettingsCreateInfoEXT {
  explicit LayerSettingsCreateInfoEXT(const std::vector<LayerSettingEXT>& all)
      : count(static_cast<uint32_t>(all.size())), settings(all.data()) {}

  int32_t type = 1000496000;
  const void* next = nullptr;
  uint32_t count;
  const LayerSettingEXT* settings;
};

}  // namespace vk
#endif
#endif
