// run_submissions FILE: runs a prompt of 40 tokens and a token behind it on vulkan. Prints for each of the two calls
// how often commands were submitted and waited for, and a checksum of the logits' bits.
#include <cstdio>
#include <vector>

#include "base/crc32.h"
#include "runner/session/session.h"
#include "tests/backends/vulkan/faults.h"

namespace mote::test {
namespace {

Status run(const char* path) {
  install_faults();
  MOTE_ASSIGN(const std::shared_ptr<const Model> model, Model::open(Source(path), {.backend = "vulkan"}));
  SessionOptions options;
  options.context_length = 64;
  options.prefill_chunk = 64;
  MOTE_ASSIGN(const std::unique_ptr<Session> session, Session::open(model, options));
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 40; ++i) prompt.push_back((i * 37 + 11) % model->vocab_size());
  for (const bool is_counted : {false, true}) {  // buffers, which the first calls make, take submissions of their own
    const auto report = [&](std::span<const float> logits) {
      if (!is_counted) return;
      std::printf("%lld %lld %08x\n", static_cast<long long>(num_calls("QueueSubmit")),
                  static_cast<long long>(num_calls("WaitForFences")), crc32(std::as_bytes(logits)));
    };
    session->reset();
    disarm();
    MOTE_ASSIGN(const std::span<const float> first, session->prefill(prompt));
    report(first);
    disarm();
    MOTE_ASSIGN(const std::span<const float> second, session->decode(7));
    report(second);
  }
  return {};
}

}  // namespace
}  // namespace mote::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: run_submissions FILE\n");
    return 2;
  }
  const mote::Status status = mote::test::run(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
