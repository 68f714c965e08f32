// Weights of which an asset beside the file has the only copy.
#include "runner/program/asset_weights.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kernels/formats.h"
#include "runner/program/program.h"
#include "tests/fuzz/mutate.h"
#include "tests/runner/program/map_folder.h"
#include "tests/runner/program/tiny_model.h"

namespace mote {
namespace {

constexpr const char* kAsset = "test.asset/weights.bin";

// Without rows that fill tiles up, which are random there and not of zeros.
test::ProgramBuilder model() { return test::tiny_model({.vocab_size = 32}); }

struct Shared {
  test::Bytes program;
  test::Bytes asset;
};

// The code in a row and column of a matrix of tiles, as docs/file-format.md says where it is.
int code_at(const test::Bytes& tiles, const fb::WeightT& weight, size_t row, size_t column) {
  const size_t columns = static_cast<size_t>(weight.shape.back()), group = static_cast<size_t>(weight.group_size);
  const auto block =
      static_cast<size_t>(block_bytes(weight.bits, weight.group_size, static_cast<int64_t>(columns / group)));
  size_t plane = row / 16 * block + column / group * static_cast<size_t>(tile_bytes(weight.bits, weight.group_size));
  unsigned digit = 0, shift = 0;
  for (const int width : weight_format(weight.bits).plane_bits) {
    if (width == 0) break;
    const auto bits = static_cast<unsigned>(width);
    const size_t in_plane = column % group, per_block = 32 / bits, h = in_plane % per_block / 4;
    const size_t byte = in_plane / per_block * 64 + 4 * (row % 16) + in_plane % 4;
    digit |= (std::to_integer<unsigned>(tiles[plane + byte]) >> (bits * h) & ((1u << bits) - 1)) << shift;
    plane += static_cast<size_t>(plane_bytes(width, weight.group_size));
    shift += bits;
  }
  return weight.bits == 1 ? 2 * static_cast<int>(digit) - 1 : static_cast<int>(digit) - (1 << (weight.bits - 1));
}

uint64_t append(test::Bytes& to, const void* data, size_t bytes) {
  const uint64_t at = to.size();
  const auto* begin = static_cast<const std::byte*>(data);
  to.insert(to.end(), begin, begin + bytes);
  return at;
}

// Rows of codes, then multipliers and scales, or products of them with the scales in `rest`.
void add_tiles(const test::Bytes& tiles, const fb::WeightT& weight, bool fold, test::Bytes& asset, test::Bytes& rest,
               fb::AssetWeightT& place) {
  const size_t rows = static_cast<size_t>(weight.shape[0]), columns = static_cast<size_t>(weight.shape[1]);
  const size_t group = static_cast<size_t>(weight.group_size), groups = columns / group;
  const auto tile = static_cast<size_t>(tile_bytes(weight.bits, weight.group_size));
  test::Bytes codes, multipliers, scales, products;
  for (size_t r = 0; r < rows; ++r) {
    const size_t block = r / 16 * (groups * tile + 64);
    float scale = 0;
    std::memcpy(&scale, tiles.data() + block + groups * tile + r % 16 * 4, sizeof scale);
    append(scales, &scale, sizeof scale);
    for (size_t g = 0; g < groups; ++g) {
      const auto at = block + g * tile + static_cast<size_t>(code_bytes(weight.bits, weight.group_size)) + r % 16;
      multipliers.push_back(tiles[at]);
      const float product = static_cast<float>(std::to_integer<int8_t>(tiles[at])) * scale;
      append(products, &product, sizeof product);
    }
    const bool narrow = weight.bits <= 4;
    for (size_t c = 0; c < columns; c += narrow ? 2 : 1) {
      const int low = code_at(tiles, weight, r, c), high = narrow ? code_at(tiles, weight, r, c + 1) : 0;
      codes.push_back(static_cast<std::byte>(narrow ? (low & 15) | (high & 15) << 4 : low));
    }
  }
  place.layout = weight.bits <= 4 ? fb::AssetLayout::int4 : fb::AssetLayout::int8;
  const size_t first = (rows + 1) / 2 * codes.size() / rows;  // two pieces, in the other order
  const uint64_t second = append(asset, codes.data() + first, codes.size() - first);
  place.pieces = {append(asset, codes.data(), first), second};
  if (!fold) place.multipliers = {append(asset, multipliers.data(), multipliers.size())};
  place.scales = {fold ? append(asset, products.data(), products.size()) : append(asset, scales.data(), scales.size())};
  rest.resize(Size(rest.size()).align_up(64).unsigned_value());
  place.rest = rest.size();
  if (fold) append(rest, scales.data(), scales.size());
}

Shared share(test::ProgramBuilder builder, bool fold, const std::function<void(fb::ProgramT&)>& edit = {}) {
  builder.build();
  fb::ProgramT& program = builder.program;
  program.asset = std::make_unique<fb::AssetT>();
  Shared made;
  test::Bytes rest;
  for (const auto& weight : program.weights) {
    const auto begin = builder.weights.begin() + static_cast<std::ptrdiff_t>(weight->offset);
    const test::Bytes bytes(begin, begin + static_cast<std::ptrdiff_t>(weight->bytes));
    auto place = std::make_unique<fb::AssetWeightT>();
    if (weight->bits == 0)
      place->pieces = {append(made.asset, bytes.data(), bytes.size())};
    else
      add_tiles(bytes, *weight, fold, made.asset, rest, *place);
    program.asset->weights.push_back(std::move(place));
  }
  program.asset->bytes = made.asset.size();
  std::unique_ptr<fb::SegmentT> weights = std::move(program.segments[0]);
  weights->offset = 65536;
  weights->bytes = builder.weights.size();
  weights->file = kAsset;
  program.segments.clear();
  program.segments.push_back(std::make_unique<fb::SegmentT>());
  program.segments[0]->kind = fb::SegmentKind::asset_rest;
  rest.resize(std::max<size_t>(rest.size(), 1));
  program.segments[0]->crc32 = crc32(rest);
  made.program = test::lay_out(program, {rest}, 65536);
  const size_t first = program.segments[0]->offset;
  program.segments.insert(program.segments.begin(), std::move(weights));
  if (edit) edit(program);
  EXPECT_TRUE(test::replace_program(made.program, test::pack(program), first));
  return made;
}

class AssetWeightsFile : public MapFolder {
 protected:
  void write_both(const Shared& files) {
    write(files.program);
    std::filesystem::create_directories(folder_ / "test.asset");
    write(files.asset, kAsset);
  }
  Result<Verified> load(LoadMode mode = LoadMode::kMap) const {
    MOTE_ASSIGN(Mapped mapped, map((folder_ / "test.mote").string(), mode));
    return verify(std::move(mapped), {.path = {}, .mode = mode});
  }
  Status refused(bool fold, const std::function<void(fb::ProgramT&)>& edit) {
    write_both(share(model(), fold, edit));
    return load().status();
  }
};

TEST_F(AssetWeightsFile, gives_the_weights_of_a_whole_file) {
  for (const bool fold : {false, true}) {
    const auto whole = verify(*map_bytes("whole.mote", model().build()));
    write_both(share(model(), fold));
    const auto loaded = load();
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_FALSE(loaded->has_weights());
    EXPECT_TRUE(loaded->weight(0).empty());
    EXPECT_TRUE(check_segments(*loaded).ok());
    const Status made = load_asset_weights(*loaded, {});
    ASSERT_TRUE(made.ok()) << made.message();
    for (uint32_t i = 0; i < loaded->program().weights()->size(); ++i)
      EXPECT_TRUE(std::ranges::equal(loaded->weight(i), whole->weight(i))) << i;
    EXPECT_TRUE(check_segments(*loaded).ok());
    EXPECT_TRUE(std::filesystem::exists(folder_ / "test.mote.cpu-cache"));
    std::filesystem::remove(folder_ / "test.mote.cpu-cache");
  }
}

TEST_F(AssetWeightsFile, are_made_for_a_target_that_reads_them) {
  write_both(share(model(), true));
  auto verified = load();
  ASSERT_TRUE(verified.ok());
  const auto shared = std::make_shared<const Verified>(std::move(*verified));
  EXPECT_TRUE(mote::bind(shared, "cpu", {.purpose = Purpose::kDescribe}).ok());
  EXPECT_FALSE(shared->has_weights());
  EXPECT_TRUE(mote::bind(shared, "cpu", {}).ok());
  EXPECT_TRUE(shared->has_weights());
}

TEST_F(AssetWeightsFile, places_outside_of_the_asset_are_refused) {
  const auto pieces = [](fb::ProgramT& program) { program.asset->weights[0]->pieces[1] = program.asset->bytes; };
  expect(refused(true, pieces), Code::kInvalidProgram, "asset.weights[0].pieces[1] = ");
  const auto wraps = [](fb::ProgramT& program) { program.asset->weights[0]->scales[0] = UINT64_MAX - 3; };
  expect(refused(true, wraps), Code::kInvalidProgram, "asset.weights[0].scales[0] = 18446744073709551612: its ");
  const auto rest = [](fb::ProgramT& program) { program.asset->weights[0]->rest = 1 << 20; };
  expect(refused(true, rest), Code::kInvalidProgram, "asset.weights[0] rest = 1048576: must be a multiple of 64");
}

TEST_F(AssetWeightsFile, fields_that_do_not_fit_are_refused) {
  const auto layout = [](fb::ProgramT& program) { program.asset->weights[0]->layout = fb::AssetLayout::dense; };
  expect(refused(false, layout), Code::kInvalidProgram, "layout = dense: holds no weights of ");
  const auto scales = [](fb::ProgramT& program) { program.asset->weights[0]->scales.clear(); };
  expect(refused(false, scales), Code::kInvalidProgram, "scales: must be there for codes");
  const auto count = [](fb::ProgramT& program) { program.asset->weights.pop_back(); };
  expect(refused(false, count), Code::kInvalidProgram, "one for each of the program");
  const auto absent = [](fb::ProgramT& program) { program.asset.reset(); };
  expect(refused(false, absent), Code::kInvalidProgram, "must be a name that ends in .motew");
  for (const char* name : {"../weights.bin", "a/../../b", "/etc/passwd", "weights.bin", "a//b", "c:/d", "a/b/"}) {
    const auto named = [&](fb::ProgramT& program) { program.segments[0]->file = name; };
    expect(refused(false, named), Code::kInvalidProgram, "must be a path of names within a folder beside the file");
  }
  const auto overlap = [](fb::ProgramT& program) { program.weights[1]->offset = program.weights[0]->offset; };
  expect(refused(false, overlap), Code::kInvalidProgram, "the end of the one before");
  const auto growth = [](fb::ProgramT& program) { program.segments[0]->bytes = uint64_t{1} << 40; };
  expect(refused(false, growth), Code::kInvalidProgram, "cannot hold weights of 1099511627776 bytes");
}

TEST_F(AssetWeightsFile, mutations_are_refused_or_load) {
  const Shared whole = share(model(), true);
  test::Random random(7);
  int loaded = 0;
  for (int i = 0; i < 600; ++i) {
    Shared files = share(model(), i % 2 == 0, [&](fb::ProgramT& program) {
      if (i % 3 != 0) test::change_asset(*program.asset, random);
    });
    if (i % 3 == 0 && test::below(random, 2) == 0) files.asset[test::below(random, files.asset.size())] ^= std::byte{4};
    if (i % 7 == 0) files.asset.resize(test::below(random, files.asset.size()));
    write_both(files);
    const auto verified = load();
    if (!verified.ok()) continue;
    const Status made = load_asset_weights(*verified, {});
    EXPECT_TRUE(made.ok() || made.code() == Code::kInvalidProgram) << made.message();
    EXPECT_TRUE(check_segments(*verified).ok());
    loaded += made.ok() ? 1 : 0;
    std::filesystem::remove(folder_ / "test.mote.cpu-cache");
  }
  EXPECT_GT(loaded, 40);
  EXPECT_LT(loaded, 560);
}

}  // namespace
}  // namespace mote
