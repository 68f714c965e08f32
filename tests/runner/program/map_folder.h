// A folder for files that are mapped, and what a call on one must answer.
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/runner/program/test_ops.h"

namespace mote {

class MapFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("mote_map_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const test::Bytes& bytes, const std::string& name = "test.mote") {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path.string();
  }

  std::filesystem::path folder_;
};

inline void expect(const Status& status, Code code, const std::string& message) {
  EXPECT_EQ(status.code(), code);
  EXPECT_NE(status.message().find(message), std::string::npos) << status.message();
}

}  // namespace mote
