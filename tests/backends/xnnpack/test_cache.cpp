// Packed weights in a file beside the model: used where they fit, ignored and written anew where not; results never
// differ.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/crc32.h"
#include "tests/backends/xnnpack/harness.h"

namespace mote::xnnpack::test {
namespace {

namespace fs = std::filesystem;
using mote::test::random_floats;
using mote::test::random_tiles;

constexpr int64_t kTokensOfCall = 3;
constexpr uint32_t kProgram = 0x1234;
constexpr size_t kHeaderBytes = 128, kTableOffsetAt = 24, kProgramAt = 48, kLibraryAt = 52, kTableCrcAt = 64,
                 kHeaderCrcAt = 68;

class XnnpackCache : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_library()) GTEST_SKIP();
    folder_ = fs::temp_directory_path() / ("mote-cache-" + std::to_string(::getpid()) + "-" + std::to_string(count_++));
    fs::create_directories(folder_);
    std::ofstream(model()) << "a model";
    const Loaded plain(blob_, weights());
    ASSERT_TRUE(plain.status().ok()) << plain.status().message();
    private_without_ = plain.program().private_bytes();
    expected_ = run(Loaded(blob_, weights()));
  }
  void TearDown() override {
    ::unsetenv("MOTE_CACHE_DIR");
    ::unsetenv("MOTE_XNNPACK_CACHE");
    std::error_code error;
    fs::permissions(folder_, fs::perms::owner_all, error);
    fs::remove_all(folder_, error);
  }

  std::string model() const { return folder_ / "m.mote"; }
  std::string cache() const { return model() + ".xnnpack-cache"; }
  std::vector<const Owned*> weights() const { return {&four_bits_.owned, &eight_bits_.owned, &dense_}; }
  Loaded load(uint32_t program = kProgram) const { return Loaded(blob_, weights(), 1, model(), program); }

  std::vector<float> run(Loaded loaded) const {
    const Status status = loaded.run({&in_}, {{1, kTokensOfCall, 48}}, kTokensOfCall);
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) return {};
    return {loaded.output().as<float>(), loaded.output().as<float>() + loaded.output().count()};
  }

  // Nothing packed is private. What is: scales, the bias.
  static bool is_file_backed(const Loaded& loaded) {
    return loaded.program().file_backed_bytes() > 20000 && loaded.program().private_bytes() < 4000;
  }

  Bytes read() const {
    std::ifstream file(cache(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    return Bytes(data, data + text.size());
  }
  void write(const Bytes& bytes) const {
    std::ofstream(cache(), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  size_t num_files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  // 64 -> 96 of 4 bits, times scales of rows, -> 64 of 8 bits, -> 48 dense with a bias.
  static Bytes graph() {
    GraphBuilder graph;
    const int32_t x = graph.input({1, kT, 64}), y = graph.output({1, kT, 48});
    const int32_t codes = graph.activation({1, kT, 64}, fb::DType::int8_rows);
    const int32_t products = graph.activation({1, kT, 96}), wide = graph.activation({1, kT, 96});
    graph.node(fb::Op::convert, {x}, codes);
    graph.node(fb::Op::fully_connected, {codes, graph.weight({96, 64}, 0, fb::WeightForm::int4_blocks)}, products);
    graph.node(fb::Op::binary, {products, graph.weight({96}, 0, fb::WeightForm::row_scales)}, wide,
               fb::Function::multiply);
    const int32_t more = graph.activation({1, kT, 96}, fb::DType::int8_rows), middle = graph.activation({1, kT, 64});
    graph.node(fb::Op::convert, {wide}, more);
    graph.node(fb::Op::fully_connected, {more, graph.weight({64, 96}, 1, fb::WeightForm::int8_high)}, middle);
    const int32_t bias = graph.constant({48}, std::vector<float>(48, 0.5f));
    graph.node(fb::Op::fully_connected, {middle, graph.weight({48, 64}, 2), bias}, y);
    return graph.build();
  }

  static inline int count_ = 0;
  fs::path folder_;
  const Bytes blob_ = graph();
  const mote::test::Tiles four_bits_ = random_tiles({96, 64}, 4, 32, 1, Multipliers::kNotNegative),
                          eight_bits_ = random_tiles({64, 96}, 8, 32, 2, Multipliers::kNotNegative);
  const Owned dense_ = random_floats({48, 64}, 3), in_ = random_floats({1, kTokensOfCall, 64}, 4);
  std::vector<float> expected_;
  uint64_t private_without_ = 0;
};

TEST_F(XnnpackCache, second_load_packs_nothing) {
  const Loaded first = load();
  EXPECT_TRUE(is_file_backed(first));
  EXPECT_EQ(num_files(), 2u);
  const auto written = fs::last_write_time(cache());
  EXPECT_TRUE(is_file_backed(load()));
  EXPECT_EQ(fs::last_write_time(cache()), written);
  EXPECT_EQ(run(load()), expected_);
}

TEST_F(XnnpackCache, second_load_reads_scales_from_the_file_too) {
  const Loaded first = load(), second = load();
  ASSERT_TRUE(second.status().ok()) << second.status().message();
  EXPECT_LT(second.program().private_bytes(), first.program().private_bytes());
  EXPECT_GT(second.program().file_backed_bytes(), first.program().file_backed_bytes());
}

TEST_F(XnnpackCache, each_target_has_its_own) {
  const auto load_as = [&](const std::string& target) {
    return Loaded(blob_, weights(), 1, model(), kProgram, target);
  };
  ASSERT_TRUE(load().status().ok());
  const auto written = fs::last_write_time(cache());
  for (const std::string name : {"xnnpack+toy", "../m", "", "a b"}) EXPECT_TRUE(is_file_backed(load_as(name))) << name;
  EXPECT_EQ(num_files(), 6u);
  EXPECT_TRUE(fs::exists(model() + ".xnnpack+toy-cache"));
  EXPECT_EQ(fs::last_write_time(cache()), written);
}

TEST_F(XnnpackCache, first_load_gives_the_same_results) { EXPECT_EQ(run(load()), expected_); }

TEST_F(XnnpackCache, is_ignored_and_written_anew_where_a_byte_is_damaged) {
  ASSERT_TRUE(load().status().ok());
  const Bytes sound = read();
  ASSERT_GT(sound.size(), 20000u);
  for (size_t at = 0; at < sound.size(); at += at < kHeaderBytes ? 3 : at + 500 > sound.size() ? 7 : 1997) {
    Bytes damaged = sound;
    damaged[at] ^= std::byte{0x40};
    write(damaged);
    ASSERT_EQ(run(load()), expected_) << at;
    ASSERT_EQ(read(), sound) << at;
  }
}

TEST_F(XnnpackCache, is_ignored_where_it_ends_early_or_late) {
  ASSERT_TRUE(load().status().ok());
  const Bytes sound = read();
  for (const size_t size :
       {size_t{0}, size_t{1}, kHeaderBytes, kHeaderBytes + 1, sound.size() / 2, sound.size() - 1, sound.size() + 1}) {
    Bytes damaged = sound;
    damaged.resize(size);
    write(damaged);
    EXPECT_EQ(run(load()), expected_) << size;
    EXPECT_EQ(read(), sound) << size;
  }
}

void seal(Bytes* bytes) {
  uint64_t table = 0;
  std::memcpy(&table, bytes->data() + kTableOffsetAt, sizeof(table));
  const uint32_t table_crc = table <= bytes->size() ? crc32(std::span(*bytes).subspan(static_cast<size_t>(table))) : 0;
  std::memcpy(bytes->data() + kTableCrcAt, &table_crc, sizeof(table_crc));
  const uint32_t header_crc = crc32(std::span(*bytes).first(kHeaderCrcAt));
  std::memcpy(bytes->data() + kHeaderCrcAt, &header_crc, sizeof(header_crc));
}

TEST_F(XnnpackCache, is_ignored_where_another_library_or_program_packed) {
  for (const size_t at : {kProgramAt, kLibraryAt}) {
    ASSERT_TRUE(load().status().ok());
    const Bytes sound = read();
    Bytes other = sound;
    other[at] ^= std::byte{1};
    seal(&other);
    write(other);
    EXPECT_EQ(run(load()), expected_);
    EXPECT_EQ(read(), sound);
  }
  const Bytes before = read();
  EXPECT_TRUE(load(kProgram + 1).status().ok());
  EXPECT_NE(read(), before);
}

TEST_F(XnnpackCache, other_weights_of_one_path_are_packed_anew) {
  ASSERT_TRUE(load().status().ok());
  std::ofstream(model()) << "another model";
  const Bytes before = read();
  EXPECT_EQ(run(load()), expected_);
  EXPECT_NE(read(), before);
}

// Checksums that hold: the table itself lies.
TEST_F(XnnpackCache, mutated_tables_never_crash) {
  ASSERT_TRUE(load().status().ok());
  const Bytes sound = read();
  uint64_t table = 0;
  std::memcpy(&table, sound.data() + kTableOffsetAt, sizeof(table));
  for (uint64_t i = 0; i < 300; ++i) {
    std::mt19937_64 random(i * 0x9E3779B97F4A7C15u);
    Bytes mutated = sound;
    if (i % 8 == 0) mutated.resize(static_cast<size_t>(table + random() % (sound.size() - table)));
    for (uint64_t count = 1 + random() % 3; count > 0; --count) {
      const uint64_t first = i % 4 == 1 ? 8 : table, end = i % 4 == 1 ? kTableCrcAt : mutated.size();
      if (first < end)
        mutated[static_cast<size_t>(first + random() % (end - first))] = static_cast<std::byte>(random());
    }
    seal(&mutated);
    write(mutated);
    ASSERT_FALSE(run(load()).empty()) << i;
  }
}

TEST_F(XnnpackCache, folder_that_cannot_be_written_is_no_error) {
  ::setenv("MOTE_CACHE_DIR", (folder_ / "missing").c_str(), 1);
  const Loaded loaded = load();
  ASSERT_TRUE(loaded.status().ok());
  EXPECT_EQ(loaded.program().file_backed_bytes(), 0u);
  EXPECT_EQ(loaded.program().private_bytes(), private_without_);
  EXPECT_EQ(run(load()), expected_);
}

// The disk is full in the middle: what was written stays mapped, the rest private.
TEST_F(XnnpackCache, file_that_cannot_be_written_whole_is_no_error) {
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlim_t whole = limit.rlim_cur;
  limit.rlim_cur = 12000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::vector<float> result = run(load());
  limit.rlim_cur = whole;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(result, expected_);
  EXPECT_EQ(num_files(), 1u);
}

TEST_F(XnnpackCache, goes_where_it_is_told_or_nowhere) {
  const fs::path other = folder_ / "caches";
  fs::create_directories(other);
  ::setenv("MOTE_CACHE_DIR", other.c_str(), 1);
  EXPECT_TRUE(is_file_backed(load()));
  EXPECT_TRUE(fs::exists(other / "m.mote-00001234.xnnpack-cache"));
  EXPECT_FALSE(fs::exists(cache()));
  ::unsetenv("MOTE_CACHE_DIR");
  ::setenv("MOTE_XNNPACK_CACHE", "0", 1);
  EXPECT_EQ(load().program().file_backed_bytes(), 0u);
  EXPECT_FALSE(fs::exists(cache()));
}

TEST_F(XnnpackCache, a_load_that_is_cancelled_leaves_no_file) {
  const auto aligned = align(blob_);
  DelegateSource source;
  source.cache_prefix = model();
  source.target = "xnnpack";
  for (uint32_t i = 0; i < 2; ++i) {
    DelegatePart part{"test", {aligned.get(), blob_.size()}, {}};
    for (const Owned* weight : weights())
      part.weights.push_back({i * 10 + static_cast<uint32_t>(part.weights.size()), "w", weight->tensor});
    source.parts.push_back(std::move(part));
  }
  std::vector<double> fractions;
  bool is_cancelled = true;
  source.progress = [&](double fraction) {
    fractions.push_back(fraction);
    return is_cancelled && fraction > 0.0 ? Status(Code::kCancelled, "stop") : Status();
  };
  const auto cancelled = find_backend("xnnpack")->load(source);
  EXPECT_EQ(cancelled.status().code(), Code::kCancelled);
  EXPECT_EQ(cancelled.status().message(), "stop");
  EXPECT_EQ(num_files(), 1u);
  is_cancelled = false;
  EXPECT_TRUE(find_backend("xnnpack")->load(source).ok());
  EXPECT_EQ(num_files(), 2u);
  EXPECT_EQ(fractions, (std::vector<double>{0.0, 0.5, 0.0, 0.5}));
}

TEST_F(XnnpackCache, a_folder_in_its_place_is_no_error) {
  fs::create_directories(fs::path(cache()) / "full");
  EXPECT_EQ(run(load()), expected_);
  EXPECT_EQ(num_files(), 2u);
}

TEST_F(XnnpackCache, of_somebody_else_is_ignored) {
  ASSERT_TRUE(load().status().ok());
  const Bytes sound = read();
  const auto is_used = [&] {
    const auto written = fs::last_write_time(cache());
    return is_file_backed(load()) && fs::last_write_time(cache()) == written;
  };
  EXPECT_TRUE(is_used());
  for (const fs::perms others : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(cache(), others, fs::perm_options::add);
    EXPECT_FALSE(is_used());
    EXPECT_EQ(fs::status(cache()).permissions() & others, fs::perms::none);  // it was written anew
  }
  EXPECT_TRUE(is_used());
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(cache().c_str(), 12345, 12345), 0);
    EXPECT_FALSE(is_used());
    ASSERT_EQ(::chown(cache().c_str(), 12345, 12345), 0);
    ASSERT_EQ(::chown(model().c_str(), 12345, 12345), 0);
    EXPECT_TRUE(is_used());
  }
  fs::rename(cache(), folder_ / "elsewhere");
  fs::create_symlink("elsewhere", cache());
  const auto written = fs::last_write_time(folder_ / "elsewhere");
  const Loaded loaded = load();
  ASSERT_TRUE(loaded.status().ok());
  EXPECT_EQ(loaded.program().file_backed_bytes(), 0u);
  EXPECT_TRUE(fs::is_symlink(cache()));
  EXPECT_EQ(fs::last_write_time(folder_ / "elsewhere"), written);
}

TEST_F(XnnpackCache, that_becomes_shorter_while_it_is_used_is_an_error_of_the_call) {
  for (int i = 0; i < 2; ++i) {  // written by this process, then read
    Loaded loaded = load();
    ASSERT_TRUE(is_file_backed(loaded));
    ASSERT_TRUE(loaded.run({&in_}, {{1, kTokensOfCall, 48}}, kTokensOfCall).ok());
    const Bytes sound = read();
    fs::resize_file(cache(), 0);
    const Status status = loaded.run({&in_}, {{1, kTokensOfCall, 48}}, kTokensOfCall);
    EXPECT_EQ(status.code(), Code::kFileChanged);
    EXPECT_NE(status.message().find("the file of packed weights became shorter"), std::string::npos);
    write(sound);
  }
}

TEST_F(XnnpackCache, keeps_nothing_of_a_model_that_changed_while_it_was_packed) {
  const auto aligned = align(blob_);
  DelegateSource source;
  source.cache_prefix = model();
  source.target = "xnnpack";
  DelegatePart part{"test", {aligned.get(), blob_.size()}, {}};
  for (const Owned* weight : weights())
    part.weights.push_back({static_cast<uint32_t>(part.weights.size()), "w", weight->tensor});
  source.parts.push_back(std::move(part));
  source.check_unchanged = [] { return Status(Code::kFileChanged, "it changed"); };
  EXPECT_EQ(find_backend("xnnpack")->load(source).status().message(), "it changed");
  EXPECT_EQ(num_files(), 1u);
}

TEST_F(XnnpackCache, loads_at_once_agree) {
  std::vector<std::vector<float>> results(6);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = run(load()); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, expected_);
  EXPECT_EQ(num_files(), 2u);
  EXPECT_TRUE(is_file_backed(load()));
}

}  // namespace
}  // namespace mote::xnnpack::test
