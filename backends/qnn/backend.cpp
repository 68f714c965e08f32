#include <new>
#include <string>

#include "backends/qnn/delegate.h"

namespace mote::qnn {
namespace {

class QnnBackend final : public Backend {
 public:
  std::string_view name() const override { return "qnn"; }
  Status check_device() const override { return library().status(); }

  // Nothing compares a device with the CPU before it is trusted, so it is for those who name it.
  std::string why_not(const DelegateSource&) const override {
#if defined(__ANDROID__)
    return "no trial has shown that this device computes what the CPU does: name the backend qnn to use it";
#else
    return "QNN's library simulates its device on this machine";
#endif
  }

  Status check(const DelegateSource& source) const override try {
    return Parts::verify(source).status();
  } catch (const std::bad_alloc&) { return no_memory(source); }

  Result<std::shared_ptr<const DelegateProgram>> load(DelegateSource source) const override try {
    MOTE_ASSIGN(const Library* found, library());
    MOTE_ASSIGN(std::shared_ptr<const Program> program, Program::load(*found, source));
    return std::shared_ptr<const DelegateProgram>(std::move(program));
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
