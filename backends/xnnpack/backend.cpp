#include <new>
#include <string>

#include "backends/xnnpack/delegate.h"
#include "backends/xnnpack/library.h"
#include "kernels/cpu_features.h"

namespace mote::xnnpack {
namespace {

class XnnpackBackend : public Backend {
 public:
  std::string_view name() const override { return "xnnpack"; }

  Status check_device() const override {
    const Result<const Api*> api = library();
    return api.ok() ? Status() : api.status();
  }

  // Measured on x86-64 with AVX-512 VNNI, and there with the portable kernels (README.md); nothing else was.
  std::string why_not() const override {
    if (!has_vector_kernels()) return {};
    return "with 4-bit weights it is no faster for one token, slower for many, and keeps a packed copy of them in memory";
  }

  Status check(const DelegateSource& source) const override try {
    for (const DelegatePart& part : source.parts) MOTE_RETURN_IF_ERROR(verify_graph(part).status());
    return {};
  } catch (const std::bad_alloc&) {
    return no_memory(source);
  }

  Result<std::shared_ptr<const DelegateProgram>> load(DelegateSource source) const override {
    try {
      MOTE_ASSIGN(const Api* api, library());
      MOTE_ASSIGN(std::shared_ptr<const Program> program, Program::load(*api, source));
      return std::shared_ptr<const DelegateProgram>(std::move(program));
    } catch (const std::bad_alloc&) {
      return no_memory(source);
    }
  }

 private:
  static Status no_memory(const DelegateSource& source) {
    return {Code::kOutOfMemory, source.parts.front().place + ": no memory for the parts that XNNPACK runs"};
  }
};

const XnnpackBackend backend;
const BackendRegistration registration(&backend);

}  // namespace
}  // namespace mote::xnnpack
