// The tiny model as a file, with a tokenizer whose ids lie in its vocabulary.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/runner/program/tiny_model.h"
#include "tests/tokenizer/tiny_tokenizer.h"

namespace mote::test {

// A file that is removed at the end.
class TinyFile {
 public:
  explicit TinyFile(ProgramBuilder builder) {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("mote_test_" + std::to_string(getpid()) + "_" + std::to_string(count++) + ".mote");
    const Bytes bytes = builder.build();
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  ~TinyFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TinyFile(const TinyFile&) = delete;
  TinyFile& operator=(const TinyFile&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline ProgramBuilder tiny_program(const TinyModelOptions& options = {}) {
  ProgramBuilder builder = tiny_model(options);
  builder.tokenizer = TinyTokenizer().compiled();
  return builder;
}

}  // namespace mote::test
