// Names of a file that is to be replaced and of what replaces it, for AtomicFile on every system.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace mote {

constexpr int kMaxTemporaryNames = 16;  // tried before a file is given up

// kFileUnwritable. what: "cannot be written", ...; why: what the system says.
Status unwritable(const std::string& path, const char* what, const std::string& why);

std::string folder_of(const std::filesystem::path& file);
// So that a new name survives a crash; not every system can do that, Windows need not.
void sync_folder(const std::string& folder);
// Errors: if there is something that must not be replaced. path: as it was given; target: where it leads.
Status check_target(const std::string& path, const std::string& target);
// In the same folder. Nobody can know it beforehand, and so nobody can be there first.
Result<std::string> temporary_name(const std::string& target);
// What is there by such names: other writers of the same file write it, or ended before they could remove it.
std::vector<std::filesystem::path> temporary_files(const std::string& target);

}  // namespace mote
