// A store in a folder of its own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "base/digest.h"
#include "runner/store/catalog.h"
#include "tests/runner/program/tiny_model.h"

namespace mote::test {

inline std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

inline std::string sha256_of(const std::string& text) {
  Sha256 digest;
  digest.update(std::as_bytes(std::span(text)));
  return digest.hex();
}

// The bytes of a model that runs. seed: of its weights; width: how large it is
inline std::string tiny_file(uint32_t seed = 1, int32_t width = 1) {
  const Bytes bytes = tiny_model({.seed = seed, .width = width}).build();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class StoreTest : public testing::Test {
 protected:
  StoreTest() : root_(testing::TempDir() + "store_" + std::to_string(std::random_device()())) {}
  ~StoreTest() override { std::filesystem::remove_all(root_); }

  // A file with its manifest; age_s: since it was used
  std::string add(const std::string& model, const std::string& file, int64_t bytes = 1000, int age_s = 0) {
    const std::string path = root_ + "/models/" + model + "/" + file;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << std::string(static_cast<size_t>(bytes), 'x');
    store::Manifest manifest;
    manifest.repo = model;
    manifest.bytes = bytes;
    EXPECT_TRUE(store::write_manifest(path, manifest).ok());
    std::filesystem::last_write_time(path + ".json",
                                     std::filesystem::file_time_type::clock::now() - std::chrono::seconds(age_s));
    return path;
  }

  const std::string root_;
  const store::Store store_{root_};
};

}  // namespace mote::test
