#include "runner/cli/kernels.h"

#include <nlohmann/json.hpp>
#include <set>

#include "runner/cli/fitted_table.h"
#include "runner/cli/handles.h"
#include "runner/cli/terminal.h"

namespace mote::cli {
namespace {

using Json = nlohmann::ordered_json;

Json describe_kernels() {
  return Json::parse(take_string([](char** text, mote_error* error) { return mote_describe_kernels(text, error); }));
}

std::string tokens(const Json& kernel) {
  const Json& most = kernel["max_tokens"];
  const std::string least = kernel["min_tokens"].dump();
  if (most.is_null()) return least + " or more";
  return most == kernel["min_tokens"] ? least : least + " to " + most.dump();
}

void print_all(const Json& about) {
  FittedTable table({"role", "kernel", "tokens", "needs", "rank", "runs here"});
  for (const Json& kernel : about["kernels"]) {
    table.add({kernel["role"], kernel["name"], tokens(kernel), kernel["needs"], kernel["rank"].dump(),
               kernel["runs_here"].get<bool>() ? "yes" : "no"});
  }
  table.print(stdout);
}

// A reason that is that of all stands below the table.
void print_choices(const Json& about) {
  std::set<std::string> reasons;
  for (const Json& choice : about["choices"]) reasons.insert(choice["reason"].get<std::string>());
  std::vector<std::string> heading = {"role", "weights", "tokens", "kernel"};
  if (reasons.size() > 1) heading.push_back("because");
  FittedTable table(heading);
  for (const Json& choice : about["choices"]) {
    std::vector<std::string> row = {choice["role"], choice["weights"], tokens(choice), choice["kernel"]};
    if (reasons.size() > 1) row.push_back(choice["reason"]);
    table.add(row);
  }
  table.print(stdout);
  if (reasons.size() == 1) std::printf("because: %s\n", reasons.begin()->c_str());
}

}  // namespace

void print_kernels(const std::string& file) {
  if (file.empty()) {
    const Json about = describe_kernels();
    print_all(about);
    std::printf("\nThis CPU offers %s. Give a file to see what is chosen for it.\n",
                about["cpu_features"].get<std::string>().c_str());
    return;
  }
  const Model model = open_model(file);  // which asks every op for its kernels
  print_choices(describe_kernels());
}

}  // namespace mote::cli
