// .mote-adapter files of a tiny model, made by hand.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "adapter_generated.h"
#include "base/crc32.h"
#include "runner/model/model.h"
#include "tests/runner/program/program_builder.h"

namespace mote::test {

// A file in parts. `build` makes sizes and checksums right, whatever the parts hold.
struct AdapterFile {
  fb::AdapterT description;
  Bytes data;

  // Takes room for random elements. Returns its offset.
  uint64_t add(std::mt19937& random, int64_t elements, float scale) {
    const size_t offset = data.size();
    data.resize((offset + static_cast<size_t>(elements) * sizeof(float) + 63) / 64 * 64);
    std::uniform_real_distribution<float> values(-scale, scale);
    for (int64_t i = 0; i < elements; ++i) {
      const float value = values(random);
      std::memcpy(data.data() + offset + static_cast<size_t>(i) * sizeof(float), &value, sizeof value);
    }
    return offset;
  }

  Bytes build() {
    description.data_bytes = data.size();
    description.data_crc32 = crc32(data);
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(fb::Adapter::Pack(builder, &description), fb::AdapterIdentifier());
    const std::span<const std::byte> packed = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
    Bytes file((64 + packed.size() + 63) / 64 * 64);
    std::copy(packed.begin(), packed.end(), file.begin() + 64);
    file.insert(file.end(), data.begin(), data.end());
    std::memcpy(file.data(), "MOTA\r\n\x1a\n", 8);
    put(file, 8, uint32_t{1});
    put(file, 12, uint32_t{64});
    put(file, 16, uint64_t{packed.size()});
    put(file, 24, uint64_t{file.size()});
    put(file, 32, crc32(packed));
    return file;
  }
};

// For the queries and values of the tiny model's layer, its output and its feed-forward.
inline AdapterFile tiny_adapter(const Model& model, uint32_t seed = 1, float scale = 0.3f) {
  AdapterFile file;
  std::mt19937 random(seed);
  file.description.base = std::make_unique<fb::AdapterBaseT>();
  file.description.base->model_id = "tiny";
  for (const fb::Segment* segment : *model.program().segments()) {
    if (segment->kind() != fb::SegmentKind::weights) continue;
    file.description.base->weights_bytes = segment->bytes();
    file.description.base->weights_crc32 = segment->crc32();
  }
  const auto add = [&](const std::string& module, const std::string& weight, int64_t first, int64_t rows,
                       int64_t rank) {
    auto part = std::make_unique<fb::AdapterPartT>();
    part->origin = module;
    part->weight = weight;
    part->first_row = first;
    part->rows = rows;
    part->columns = 32;
    part->rank = rank;
    part->scale = 2.0f;
    part->a_offset = file.add(random, rank * part->columns, scale);
    part->b_offset = file.add(random, rank * rows, scale);
    if (module == "o_proj") part->gains_offset = static_cast<int64_t>(file.add(random, rows, 0.1f));
    file.description.parts.push_back(std::move(part));
  };
  add("q_proj", "model.layers.0.self_attn.qkv", 0, 32, 3);
  add("v_proj", "model.layers.0.self_attn.qkv", 48, 16, 2);
  add("o_proj", "model.layers.0.self_attn.o_proj.weight", 0, 32, 4);
  add("up_proj", "model.layers.0.mlp.gate_up", 32, 32, 5);
  file.description.method = "lora";
  file.description.source = "tiny";
  file.description.exporter_version = "0";
  return file;
}

}  // namespace mote::test
