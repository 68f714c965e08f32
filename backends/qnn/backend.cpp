#include <new>
#include <string>

#include "backends/proof/sample.h"
#include "backends/proof/trial.h"
#include "backends/qnn/delegate.h"
#include "base/crc32.h"

namespace mote::qnn {
namespace {

// What a verdict on a file's parts is true for.
proof::Tried tried_of(const Library& library, const DelegateSource& source) {
  proof::Tried tried;
  tried.device = "QNN " + library.build;
  tried.backend = "qnn";
  const uint32_t target = crc32(std::as_bytes(std::span(source.target)));
  if (!source.cache_prefix.empty()) tried.file.path = source.cache_prefix + format(".qnn-verdict-%08x", target);
  tried.file.identity = format("qnn verdict 1; %s; %08x %08x %llu", library.build.c_str(), target, source.program_crc32,
                               static_cast<unsigned long long>(source.file_bytes));
  tried.file.also_trusted = source.file_owner;
  return tried;
}

Result<proof::Attempt> attempt(const Library& library, const DelegateSource& source, Parts parts, const Lost& lost) {
  proof::Attempt made;
  MOTE_ASSIGN(made.program, Program::load(library, source, std::move(parts), lost));
  const std::optional<proof::Sample> sample = proof::first_short(source.samples);
  if (!sample || !source.whole_methods) return made;
  MOTE_ASSIGN(const WholeMethods whole, source.whole_methods(made.program));
  MOTE_ASSIGN(made.own_ns, proof::replay(*whole.program, whole.parts, *sample));
  return made;
}

Result<std::shared_ptr<const DelegateProgram>> open_tried(const proof::Tried& tried, const Library& library,
                                                          const DelegateSource& source, Parts parts) {
  const proof::Verdict before = tried.read();
  MOTE_RETURN_IF_ERROR(tried.check(before));
  const Lost lost = [tried](const std::string& reason) {
    tried.keep({.state = proof::State::fails, .reason = reason});
  };
  if (before.state == proof::State::works && !source.tune) {
    MOTE_ASSIGN(std::shared_ptr<const Program> program, Program::load(library, source, std::move(parts), lost));
    return std::shared_ptr<const DelegateProgram>(std::move(program));
  }
  return proof::try_out(tried, source, [&] { return attempt(library, source, std::move(parts), lost); });
}

class QnnBackend final : public Backend {
 public:
  std::string_view name() const override { return "qnn"; }
  Status check_device() const override { return library().status(); }

  std::string why_not([[maybe_unused]] const DelegateSource& source) const override try {
#if defined(__ANDROID__)
    const Result<const Library*> found = library();
    if (!found.ok()) return found.status().message();
    const proof::Tried tried = tried_of(**found, source);
    return tried.why_the_cpu(tried.read());
#else
    return "QNN's library simulates its device on this machine";
#endif
  } catch (const std::bad_alloc&) { return no_memory(source).message(); }

  std::string findings(const DelegateSource& source) const override try {
    const Result<const Library*> found = library();
    if (!found.ok()) return {};
    const proof::Tried tried = tried_of(**found, source);
    return tried.read().text_for(tried.device);
  } catch (const std::bad_alloc&) { return {}; }

  Status check(const DelegateSource& source) const override try {
    MOTE_ASSIGN(const Library* found, library());
    MOTE_RETURN_IF_ERROR(Parts::verify(source).status());
    const proof::Tried tried = tried_of(*found, source);
    return tried.check(tried.read());
  } catch (const std::bad_alloc&) { return no_memory(source); }

  Result<std::shared_ptr<const DelegateProgram>> load(DelegateSource source) const override try {
    MOTE_ASSIGN(const Library* found, library());
    MOTE_ASSIGN(Parts parts, Parts::verify(source));
    const proof::Tried tried = tried_of(*found, source);
    MOTE_ASSIGN(std::shared_ptr<const DelegateProgram> program, open_tried(tried, *found, source, std::move(parts)));
    const std::string slower = source.is_choice ? tried.why_the_cpu(tried.read()) : "";
    MOTE_REQUIRE(slower.empty(), Code::kUnsupportedBackend, "%s", slower.c_str());
    return program;
  } catch (const std::bad_alloc&) { return no_memory(source); }

 private:
  static Status no_memory(const DelegateSource& source) {
    return {Code::kOutOfMemory, source.parts.front().place + ": no memory for the parts that QNN runs"};
  }
};

const QnnBackend qnn_backend;
const BackendRegistration registration(&qnn_backend);

}  // namespace
}  // namespace mote::qnn
