#include "backends/assets/trial.h"

#include "backends/proof/sample.h"

namespace mote::assets {
namespace {

// Of the time of other processors: who takes that much was not faster, so they computed.
constexpr double kAsSlow = 0.9;

// The functions that take ids and positions and give logits.
std::vector<WholePart> whole_parts(const std::vector<Reference>& functions) {
  std::vector<WholePart> parts;
  for (size_t i = 0; i < functions.size(); ++i) {
    const Reference& function = functions[i];
    const std::optional<size_t> ids = function.input("input_ids"), positions = function.input("position_ids");
    const bool is_whole = ids && positions && function.inputs.size() == 2 && function.outputs.size() == 1 &&
                          !function.outputs[0].shape.empty();
    if (!is_whole) continue;
    const int64_t tokens = function.inputs[*ids].num_elements(), width = function.outputs[0].shape.back();
    const int64_t rows = function.outputs[0].num_elements() / width;
    if (function.inputs[*positions].num_elements() != tokens || (rows != 1 && rows != tokens)) continue;
    parts.push_back({i, *ids, *positions, tokens, width, rows == tokens});
  }
  return parts;
}

Result<std::shared_ptr<const Program>> open_program(const std::shared_ptr<AssetLibrary>& library,
                                                    const DelegateSource& source, const AssetFolder& folder,
                                                    const Parts& parts, const std::string& units) {
  MOTE_ASSIGN(auto opened,
              OpenedAsset::open(library, folder.path(), source.cache_prefix, parts.functions, parts.ports, units));
  return std::shared_ptr<const Program>(std::make_shared<const Program>(std::move(opened), source));
}

Result<uint64_t> replay(const Program& program, const DelegateSource& source) {
  const std::optional<proof::Sample> sample = proof::first_short(source.samples);
  if (!sample) return uint64_t{0};
  return proof::replay(program, whole_parts(program.asset().functions()), *sample);
}

// What is said of processors that were asked for and not got.
std::string note_on_units(const Tried& tried, const std::shared_ptr<AssetLibrary>& library,
                          const DelegateSource& source, const AssetFolder& folder, const Parts& parts,
                          uint64_t own_ns) {
  if (tried.units.slower.empty() || own_ns == 0) return {};
  const auto slower = open_program(library, source, folder, parts, tried.units.slower);
  const Result<uint64_t> ns = slower.ok() ? replay(**slower, source) : Result<uint64_t>(slower.status());
  if (!ns.ok() || static_cast<double>(own_ns) < kAsSlow * static_cast<double>(*ns)) return {};
  return format("%s was asked for and seems not to compute: a token takes %s, and %s with %s alone",
                tried.units.wanted.c_str(), proof::milliseconds(own_ns).c_str(), proof::milliseconds(*ns).c_str(),
                tried.units.slower.c_str());
}

}  // namespace

Result<Tried> Tried::of(const AssetKind& kind, AssetLibrary& library, const DelegateSource& source,
                        const AssetFolder& folder, const Parts& parts) {
  Tried tried;
  MOTE_ASSIGN(tried.units, library.units());
  tried.device = library.device_name();
  tried.backend = kind.backend;
  if (!source.cache_prefix.empty()) tried.file.path = source.cache_prefix + "." + tried.backend + "-verdict";
  tried.file.identity =
      tried.backend + " verdict 1; " + library.identity() + "; " + tried.units.wanted +
      format("; %08x %llu; ", source.program_crc32, static_cast<unsigned long long>(source.file_bytes)) +
      folder.version() + parts.functions.front().sha256;
  tried.file.also_trusted = source.file_owner;
  return tried;
}

Result<std::shared_ptr<const DelegateProgram>> open_tried(const Tried& tried,
                                                          const std::shared_ptr<AssetLibrary>& library,
                                                          const DelegateSource& source, const AssetFolder& folder,
                                                          const Parts& parts) {
  const proof::Verdict before = tried.read();
  MOTE_RETURN_IF_ERROR(tried.check(before));
  const auto open = [&] { return open_program(library, source, folder, parts, tried.units.wanted); };
  if (before.state == proof::State::works && !source.tune) {
    MOTE_ASSIGN(const std::shared_ptr<const Program> program, open());
    return std::shared_ptr<const DelegateProgram>(program);
  }
  MOTE_RETURN_IF_ERROR(folder.check_content(parts.functions.front(), source.progress));
  return proof::try_out(tried, source, [&]() -> Result<proof::Attempt> {
    MOTE_ASSIGN(const std::shared_ptr<const Program> program, open());
    MOTE_ASSIGN(const uint64_t ns, replay(*program, source));
    return proof::Attempt{program, ns, note_on_units(tried, library, source, folder, parts, ns)};
  });
}

}  // namespace mote::assets
