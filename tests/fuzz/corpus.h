// Inputs that are kept in tests/fuzz/corpus/TARGET, one a file: what coverage-guided runs found worth keeping.
#pragma once

#include <string>
#include <vector>

namespace mote::test {

// In the order of their names; empty if there is no such folder.
std::vector<std::string> read_corpus(const std::string& target);

// Writes each input to FOLDER/TARGET/NUMBER, for a coverage-guided run to begin with. Ends the process if that fails.
void write_seeds(const std::string& folder, const std::string& target, const std::vector<std::string>& inputs);

}  // namespace mote::test
