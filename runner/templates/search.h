// Finds a text in another. find_text takes linear time; find_last_text may not, and is charged for it.
#pragma once

#include <string_view>

#include "runner/templates/budget.h"

namespace mote::jinja {

// As string_view::find and rfind, charged to the budget.
size_t find_text(Budget& budget, std::string_view text, std::string_view wanted, size_t from = 0);
size_t find_last_text(Budget& budget, std::string_view text, std::string_view wanted);

}  // namespace mote::jinja
