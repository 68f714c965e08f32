#include "runner/program/delegate.h"

#include <algorithm>

namespace mote {
namespace {

// Never destroyed: threads may compute while the process exits.
std::vector<const Backend*>& backends() {
  static std::vector<const Backend*>& registered = *new std::vector<const Backend*>;
  return registered;
}

}  // namespace

void register_backend(const Backend* backend) {
  auto& all = backends();
  all.insert(std::ranges::lower_bound(all, backend->name(), {}, &Backend::name), backend);
}

const Backend* find_backend(std::string_view name) {
  const auto& all = backends();
  const auto found = std::ranges::find(all, name, &Backend::name);
  return found == all.end() ? nullptr : *found;
}

std::vector<const Backend*> all_backends() { return backends(); }

}  // namespace mote
