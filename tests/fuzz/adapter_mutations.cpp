// Reads damaged copies of a .mote-adapter file: each must be refused with a message, or change a session's text.
//
//   adapter_mutations [--iterations N | --seconds S] [--seed S] [--first I]
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>

#include "runner/session/session.h"
#include "tests/fuzz/code_name.h"
#include "tests/fuzz/mutate.h"
#include "tests/runner/program/tiny_model.h"
#include "tests/runner/session/tiny_adapter.h"

namespace mote::test {
namespace {

using Clock = std::chrono::steady_clock;

int64_t some_number(Random& random, int64_t near) {
  constexpr int64_t kEdges[] = {0,
                                1,
                                -1,
                                16,
                                32,
                                63,
                                64,
                                65,
                                1 << 16,
                                std::numeric_limits<int32_t>::max(),
                                int64_t{1} << 40,
                                std::numeric_limits<int64_t>::max(),
                                std::numeric_limits<int64_t>::min()};
  const size_t choice = below(random, std::size(kEdges) + 4);
  if (choice < std::size(kEdges)) return kEdges[choice];
  return static_cast<int64_t>(static_cast<uint64_t>(near) + below(random, 9) - 4);
}

// Mostly a multiple of 64, as the format wants it.
uint64_t some_offset(Random& random, uint64_t near) {
  return static_cast<uint64_t>(some_number(random, static_cast<int64_t>(near))) * (below(random, 4) == 0 ? 1 : 64);
}

// Changes one field of the description, whose checksums are right again.
void change_field(fb::AdapterT& description, Random& random) {
  fb::AdapterPartT& part = *description.parts[below(random, description.parts.size())];
  switch (below(random, 11)) {
    case 0: part.first_row = some_number(random, part.first_row); break;
    case 1: part.rows = some_number(random, part.rows); break;
    case 2: part.columns = some_number(random, part.columns); break;
    case 3: part.rank = some_number(random, part.rank); break;
    case 4: part.dtype = static_cast<uint8_t>(below(random, 4)); break;
    case 5: part.a_offset = some_offset(random, part.a_offset); break;
    case 6: part.b_offset = some_offset(random, part.b_offset); break;
    case 7:
      part.gains_offset = static_cast<int64_t>(some_offset(random, static_cast<uint64_t>(part.gains_offset)));
      break;
    case 8: part.weight = description.parts[below(random, description.parts.size())]->weight; break;
    case 9: part.scale = static_cast<float>(some_number(random, 1)); break;
    default:
      description.parts.erase(description.parts.begin() +
                              static_cast<ptrdiff_t>(below(random, description.parts.size())));
  }
}

Bytes mutate(const AdapterFile& good, Random& random) {
  AdapterFile file{fb::AdapterT(good.description), good.data};
  const bool has_fields = below(random, 3) != 0;
  for (size_t i = below(random, 3) + 1; has_fields && i > 0 && !file.description.parts.empty(); --i)
    change_field(file.description, random);
  Bytes bytes = file.build();
  if (has_fields) return bytes;
  for (size_t i = below(random, 4) + 1; i > 0; --i) {
    const size_t end = below(random, 2) == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 900);
    bytes[below(random, end)] = static_cast<std::byte>(random());
  }
  if (below(random, 4) == 0) bytes.resize(below(random, bytes.size()));
  if (bytes.size() >= 64 && below(random, 2) == 0) {  // so that the damage reaches what is behind the checksum
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + 16, sizeof length);
    if (length <= bytes.size() - 64) put(bytes, 32, crc32(std::span(bytes).subspan(64, static_cast<size_t>(length))));
    put(bytes, 24, uint64_t{bytes.size()});
  }
  return bytes;
}

Status run(const std::shared_ptr<const Model>& model, Session& session, const Bytes& bytes) {
  MOTE_ASSIGN(auto adapter, Adapter::of_bytes(*model, "mutated.mote-adapter", bytes));
  session.reset();
  MOTE_RETURN_IF_ERROR(session.set_adapters({{std::move(adapter), 0.5f}}));
  const int32_t ids[] = {1, 2, 3};
  MOTE_RETURN_IF_ERROR(session.prefill(ids).status());
  return session.decode(4).status();
}

int run_all(uint64_t iterations, double seconds, uint64_t seed, uint64_t first) {
  const Bytes program = tiny_model().build();
  const auto model = *Model::open(MemoryBytes{"tiny.mote", program, nullptr}, {.mmap = false});
  const auto session = *Session::open(model, {.context_length = 16, .threads = 1});
  const AdapterFile good = tiny_adapter(*model);
  std::map<std::string, uint64_t> outcomes;
  const Clock::time_point start = Clock::now();
  for (uint64_t i = first; i < first + iterations; ++i) {
    if (seconds > 0 && std::chrono::duration<double>(Clock::now() - start).count() > seconds) break;
    Random random(seed * 0x9E3779B97F4A7C15u + i);
    const Status status = run(model, *session, mutate(good, random));
    ++outcomes[status.ok() ? "ran" : code_name(status.code())];
    if (status.code() != Code::kInternal && (status.ok() || !status.message().empty())) continue;
    std::fprintf(stderr, "mutation %" PRIu64 ": %s\n", i, status.message().c_str());
    return 1;
  }
  for (const auto& [outcome, count] : outcomes) std::printf(" %s %" PRIu64 ",", outcome.c_str(), count);
  std::printf("\n");
  return outcomes["ran"] > 0 ? 0 : 1;
}

}  // namespace
}  // namespace mote::test

int main(int argc, char** argv) {
  uint64_t iterations = std::numeric_limits<uint32_t>::max(), seed = 1, first = 0;
  double seconds = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--iterations") iterations = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--seconds") seconds = std::strtod(argv[i + 1], nullptr);
    if (name == "--seed") seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--first") first = std::strtoull(argv[i + 1], nullptr, 10);
  }
  return mote::test::run_all(iterations, seconds, seed, first);
}
