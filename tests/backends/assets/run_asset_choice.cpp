// run_asset_choice FILE BACKEND: prints the description of a file that is loaded with a backend, or with `auto`.
#include <cstdio>

#include "runner/model/model.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: run_asset_choice FILE BACKEND\n");
    return 2;
  }
  const auto model = mote::Model::open(mote::Source(argv[1]), {.backend = argv[2]});
  const auto text = model.ok() ? (*model)->describe() : mote::Result<std::string>(model.status());
  if (!text.ok()) {
    std::fprintf(stderr, "%s\n", text.status().message().c_str());
    return 1;
  }
  std::printf("%s\n", text->c_str());
  return 0;
}
