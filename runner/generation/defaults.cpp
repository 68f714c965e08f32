#include "runner/generation/defaults.h"

#include "runner/generation/options/option_table.h"
#include "runner/model/generation_config.h"

namespace mote {

Result<GenerationOptions> read_generation_defaults(std::string_view text, const Model* model) {
  MOTE_ASSIGN(const JsonTree json, parse_generation_config(text));
  OptionValues values = default_values();
  for (const Option& option : all_options()) {
    const JsonTree* found = option.scope == OptionScope::kGeneration ? json.find(option.name) : nullptr;
    if (found == nullptr || found->kind == JsonTree::Kind::kNull) continue;
    const Status status = option.read(option, *found, values, model);
    if (!status.ok()) return Status(Code::kInvalidProgram, "generation_config: " + status.message());
  }
  return std::move(values.generation);
}

Result<std::shared_ptr<const GenerationOptions>> generation_defaults(const Model& model) {
  return model.derived<GenerationOptions>([&]() -> Result<std::shared_ptr<const GenerationOptions>> {
    MOTE_ASSIGN(GenerationOptions read, read_generation_defaults(model.generation_config(), &model));
    return std::make_shared<const GenerationOptions>(std::move(read));
  });
}

}  // namespace mote
