// Weights that are in a file of their own, beside the program or elsewhere.
#include <gtest/gtest.h>

#include <filesystem>

#include "runner/program/program.h"
#include "tests/runner/program/map_folder.h"
#include "tests/runner/program/tiny_model.h"

namespace mote {
namespace {

constexpr size_t kWeightsOffset = 65536;

struct Split {
  test::Bytes program;
  test::Bytes weights;
};

test::Bytes weights_file(const test::Bytes& weights) {
  test::Bytes file(kWeightsOffset);
  file.insert(file.end(), weights.begin(), weights.end());
  std::memcpy(file.data(), "MOTW\r\n\x1a\n", 8);
  test::put<uint32_t>(file, 8, 1);
  test::put<uint32_t>(file, 12, 64);
  test::put<uint64_t>(file, 16, weights.size());
  test::put<uint64_t>(file, 24, file.size());
  test::put<uint32_t>(file, 32, crc32(weights));
  return file;
}

// edit: of the segment of the weights
Split split(test::ProgramBuilder builder, const std::function<void(fb::SegmentT&)>& edit = {}) {
  builder.build();
  fb::ProgramT& program = builder.program;
  std::unique_ptr<fb::SegmentT> weights = std::move(program.segments[0]);
  weights->offset = kWeightsOffset;
  weights->bytes = builder.weights.size();
  weights->file = "test.motew";
  if (edit) edit(*weights);
  program.segments.erase(program.segments.begin());
  std::vector<test::Bytes> others;
  if (!builder.tokenizer.empty()) {
    const auto* text = reinterpret_cast<const std::byte*>(builder.tokenizer.data());
    others.emplace_back(text, text + builder.tokenizer.size());
  }
  test::Bytes file = test::lay_out(program, others, 65536);
  const size_t first = others.empty() ? file.size() : program.segments[0]->offset;
  program.segments.insert(program.segments.begin(), std::move(weights));
  EXPECT_TRUE(test::replace_program(file, test::pack(program), first));
  return {std::move(file), weights_file(builder.weights)};
}

class WeightsFile : public MapFolder {
 protected:
  Result<Verified> load(const WeightsFrom& from = {}) const {
    MOTE_ASSIGN(Mapped mapped, map((folder_ / "test.mote").string(), from.mode));
    return verify(std::move(mapped), from);
  }
  Status refused(const WeightsFrom& from = {}) const { return load(from).status(); }
  void write_both(const Split& files) {
    write(files.program);
    write(files.weights, "test.motew");
  }
};

TEST_F(WeightsFile, gives_the_weights_of_a_whole_file) {
  for (const char* tokenizer : {"", "{}"}) {
    for (const LoadMode mode : {LoadMode::kMap, LoadMode::kRead}) {
      test::ProgramBuilder builder = test::tiny_model();
      builder.tokenizer = tokenizer;
      const auto whole = verify(*map_bytes("whole.mote", builder.build()));
      write_both(split(test::tiny_model()));
      const auto loaded = load({.mode = mode});
      ASSERT_TRUE(loaded.ok()) << loaded.status().message();
      for (uint32_t i = 0; i < loaded->program().weights()->size(); ++i) {
        EXPECT_TRUE(std::ranges::equal(loaded->weight(i), whole->weight(i))) << i;
        EXPECT_EQ(reinterpret_cast<uintptr_t>(loaded->weight(i).data()) % 64, 0u);
      }
      EXPECT_TRUE(check_segments(*loaded).ok());
      EXPECT_TRUE(loaded->file().check_unchanged().ok());
    }
  }
}

TEST_F(WeightsFile, may_lie_elsewhere) {
  const Split files = split(test::sum_model());
  write(files.program);
  expect(refused(), Code::kFileNotFound, "(the weights of " + (folder_ / "test.mote").string() + ")");
  const std::string place = write(files.weights, "elsewhere.bin");
  EXPECT_TRUE(load({.path = place}).ok());
  const MemoryBytes memory{"memory", files.program, nullptr};
  expect(verify(*map(memory)).status(), Code::kInvalidArgument,
         "memory: its weights are in test.motew: say where that is with the option weights_file");
  EXPECT_TRUE(verify(*map(memory), {.path = place}).ok());
  write(test::sum_model().build());
  expect(refused({.path = place}), Code::kInvalidArgument, "must not be given for");
}

TEST_F(WeightsFile, another_one_is_refused) {
  const Split files = split(test::tiny_model());
  write_both({files.program, split(test::tiny_model({.seed = 2})).weights});
  expect(refused(), Code::kInvalidProgram, "was exported with weights of checksum");
  const auto refused_with = [&](size_t offset, auto value, Code code, const std::string& message) {
    test::Bytes changed = files.weights;
    test::put(changed, offset, value);
    write(changed, "test.motew");
    expect(refused(), code, "test.motew: " + message);
  };
  refused_with(0, uint8_t{1}, Code::kInvalidProgram, "is no .motew file");
  refused_with(8, uint32_t{9}, Code::kUnsupportedVersion, "version = 9: this runner reads version 1");
  refused_with(12, uint32_t{65}, Code::kInvalidProgram, "header_bytes = 65: must be 64");
  refused_with(16, uint64_t{1}, Code::kInvalidProgram, "weights_bytes = 1: the file has");
  refused_with(24, uint64_t{1}, Code::kInvalidProgram, "file_bytes = 1: the file has");
  refused_with(40, uint8_t{1}, Code::kInvalidProgram, "header.reserved: must be zero");
  for (const size_t size : {size_t{0}, size_t{63}, size_t{64}, size_t{65536}, files.weights.size() - 1}) {
    test::Bytes shorter = files.weights;
    shorter.resize(size);
    write(shorter, "test.motew");
    EXPECT_FALSE(load().ok()) << size;
  }
}

TEST_F(WeightsFile, its_name_stays_in_the_folder) {
  for (const char* name : {"../test.motew", "/tmp/test.motew", "a/test.motew", "a\\test.motew", "C:test.motew",
                           "test.mote", ".motew", "..", "a\nb"}) {
    write_both(split(test::sum_model(), [&](fb::SegmentT& segment) { segment.file = name; }));
    expect(refused(), Code::kInvalidProgram, "segments[0].file");
  }
  write_both(split(test::sum_model(), [](fb::SegmentT& segment) { segment.offset = 0; }));
  expect(refused(), Code::kInvalidProgram, "segments[0] offset = 0: must be 65536");
  write_both(split(test::sum_model(), [](fb::SegmentT& segment) { segment.kind = fb::SegmentKind::tokenizer; }));
  expect(refused(), Code::kInvalidProgram, "file: only weights may be in another file");
}

TEST_F(WeightsFile, damage_is_found) {
  Split files = split(test::tiny_model());
  files.weights.back() ^= std::byte{1};
  write_both(files);
  const auto loaded = load();
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  expect(check_segments(*loaded), Code::kInvalidProgram, "test.motew is damaged");
  std::ofstream(folder_ / "test.motew", std::ios::binary | std::ios::app) << "x";
  expect(loaded->file().check_unchanged(), Code::kFileChanged, "test.motew: the file was changed");
}

}  // namespace
}  // namespace mote
