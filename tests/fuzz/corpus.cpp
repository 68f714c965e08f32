#include "tests/fuzz/corpus.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace mote::test {

namespace fs = std::filesystem;

std::vector<std::string> read_corpus(const std::string& target) {
  const fs::path folder = fs::path(MOTE_FUZZ_CORPUS) / target;
  if (!fs::is_directory(folder)) return {};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs;
  for (const fs::path& file : files) {
    std::ifstream stream(file, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return inputs;
}

void write_seeds(const std::string& folder, const std::string& target, const std::vector<std::string>& inputs) {
  const fs::path to = fs::path(folder) / target;
  fs::create_directories(to);
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::ofstream stream(to / std::to_string(i), std::ios::binary);
    if (stream << inputs[i] << std::flush) continue;
    std::fprintf(stderr, "%s: cannot be written\n", (to / std::to_string(i)).string().c_str());
    std::exit(1);
  }
}

}  // namespace mote::test
