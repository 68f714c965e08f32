#include <algorithm>
#include <map>

#include "kernels/op.h"

namespace mote {

namespace {

struct Registry {
  std::map<std::string_view, Op> ops;
  std::string_view repeated;  // a name that was registered twice
};

// Constructed on first use: registrations run in no particular order before main. Never destroyed: threads may compute
// while the process exits.
Registry& registry() {
  static Registry& all = *new Registry;
  return all;
}

Status missing(std::string_view name, const char* kind) {
  return Status(Code::kInvalidProgram, format("attribute '%.*s' is missing or of another kind: must be %s",
                                              static_cast<int>(name.size()), name.data(), kind));
}

}  // namespace

void register_op(const Op& op) {
  if (!registry().ops.emplace(op.name, op).second) registry().repeated = op.name;
}

const Op* find_op(std::string_view name) {
  const auto found = registry().ops.find(name);
  return found == registry().ops.end() ? nullptr : &found->second;
}

std::vector<const Op*> all_ops() {
  std::vector<const Op*> ops;
  for (const auto& [name, op] : registry().ops) ops.push_back(&op);
  return ops;
}

Status check_ops() {
  const std::string_view name = registry().repeated;
  MOTE_REQUIRE(name.empty(), Code::kInternal, "this build registers the op '%.*s' twice: a name must be one op's",
               static_cast<int>(name.size()), name.data());
  return Status();
}

const Attribute* Call::find(std::string_view name) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [name](const Attribute& attribute) { return attribute.name == name; });
  return found == attributes.end() ? nullptr : &*found;
}

Result<int64_t> Call::integer(std::string_view name) const {
  const Attribute* attribute = find(name);
  if (attribute == nullptr || attribute->integers.size() != 1) return missing(name, "one integer");
  return attribute->integers[0];
}

Result<double> Call::number(std::string_view name) const {
  const Attribute* attribute = find(name);
  if (attribute != nullptr && attribute->numbers.size() == 1) return attribute->numbers[0];
  if (attribute != nullptr && attribute->integers.size() == 1) return static_cast<double>(attribute->integers[0]);
  return missing(name, "one number");
}

Result<std::string_view> Call::text(std::string_view name) const {
  const Attribute* attribute = find(name);
  if (attribute == nullptr || attribute->text.data() == nullptr) return missing(name, "a text");
  return attribute->text;
}

}  // namespace mote
