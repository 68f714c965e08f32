// run_session FILE BACKEND FOLDER [OTHER]: does with one target of a file whatever a session can do, for tests in
// Python, which compare backends. Prints a line for each: its name, then numbers: the ids that followed, greedily, or
// logits. A call that fails is made again once, and must then go on as if nothing had happened. With OTHER sessions may
// also go on in that target, and some are moved there and back; without it that is an error.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "runner/session/session.h"

namespace mote::test {
namespace {

constexpr int64_t kContext = 64;

void fail(const Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

// What `call` returns, called again where it fails.
template <typename Call>
auto again(const Call& call) {
  auto result = call();
  if constexpr (std::is_same_v<decltype(result), Status>) {
    if (!result.ok()) result = call();
    if (!result.ok()) fail(result);
    return;
  } else {
    if (!result.ok()) result = call();
    if (!result.ok()) fail(result.status());
    return *std::move(result);
  }
}

class Run {
 public:
  Run(const char* path, std::string backend, std::string folder, std::string other)
      : model_(again([&] { return Model::open(Source(path), {.backend = backend}); })),
        folder_(std::move(folder)),
        backend_(std::move(backend)),
        other_(std::move(other)) {}

  void all() {
    prompts();
    ways_back();
    forks();
    files();
    drafts();
    prefixes();
    scores();
    overflow();
    moves();
  }

 private:
  std::unique_ptr<Session> open(SessionOptions options = {}) {
    options.context_length = kContext;
    options.threads = 2;
    options.kv_dtype = KvType::kFloat32;  // as the toy backend holds them
    return again([&] { return Session::open(model_, options); });
  }

  std::vector<int32_t> ids(size_t count, int32_t seed = 0) const {
    std::vector<int32_t> all;
    for (size_t i = 0; i < count; ++i)
      all.push_back((static_cast<int32_t>(i) * 37 + 11 + seed * 101) % model_->vocab_size());
    return all;
  }

  // A call that fails leaves the chunks before that in place.
  std::span<const float> feed(Session& session, const std::vector<int32_t>& all) const {
    const int64_t start = session.position();
    const auto logits =
        again([&] { return session.prefill(std::span(all).subspan(static_cast<size_t>(session.position() - start))); });
    check_backend(session);
    return logits;
  }

  void check_backend(const Session& session) const {
    if (session.backend() == backend_ || session.backend() == other_) return;
    fail({Code::kInternal, "the session left " + backend_ + ": " + session.moved_because()});
  }

  void move(Session& session, bool away) const {
    if (other_.empty()) return;
    again([&] { return session.move_to(away ? other_ : backend_); });
    if (session.backend() == (away ? other_ : backend_)) return;
    fail({Code::kInternal, "the session is not where it was moved to"});
  }

  static int32_t best(std::span<const float> logits) {
    return static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
  }

  // Continues greedily and prints the ids.
  std::vector<int32_t> go_on(Session& session, const char* name, int count = 6) const {
    std::vector<int32_t> chosen;
    std::printf("%s:", name);
    for (int i = 0; i < count; ++i) {
      const std::span<const float> logits = again([&] { return session.logits(); });
      chosen.push_back(best(logits));
      check_maxima(session, logits[static_cast<size_t>(chosen.back())]);
      std::printf(" %d", chosen.back());
      again([&] { return session.decode(chosen.back()); });
    }
    std::printf("\n");
    check_backend(session);
    return chosen;
  }

  static void check_maxima(const Session& session, float largest) {
    const std::span<const float> maxima = session.logit_maxima();
    if (maxima.empty() || *std::ranges::max_element(maxima) == largest) return;
    fail({Code::kInternal, "logit_maxima are not those of the logits"});
  }

  void prompts() {
    for (const size_t count : {1, 2, 3, 7, 16, 17, 40, 57}) {
      const auto session = open();
      const std::span<const float> logits = feed(*session, ids(count));
      std::printf("prefill %zu:", count);
      for (const float logit : logits.first(64)) std::printf(" %.9g", static_cast<double>(logit));
      std::printf("\n");
      go_on(*session, "after prefill");
    }
  }

  void ways_back() {
    const auto session = open();
    feed(*session, ids(40));
    go_on(*session, "before");
    for (const int64_t position : {44, 41, 23, 1}) {
      again([&] { return session->rewind(position); });
      feed(*session, ids(9, 1));
      go_on(*session, "rewound");
    }
    session->reset();
    feed(*session, ids(5, 2));
    go_on(*session, "reset");
  }

  void forks() {
    const auto session = open();
    feed(*session, ids(21));
    const auto fork = again([&] { return session->fork(); });
    go_on(*session, "parent");
    feed(*fork, ids(3, 1));
    go_on(*fork, "fork");
    go_on(*session, "parent again");
  }

  void files() {
    const auto session = open();
    feed(*session, ids(33));
    const std::string path = folder_ + "/saved";
    again([&] { return session->save(path); });
    go_on(*session, "saved");
    const auto restored = open();
    again([&] { return restored->restore(path); });
    go_on(*restored, "restored");
  }

  void drafts() {
    const auto session = open();
    feed(*session, ids(12));
    const int64_t start = session->position();
    const std::vector<int32_t> right = go_on(*session, "undrafted", 8);
    again([&] { return session->rewind(start); });
    if (session->longest_draft() == 0) return;
    const size_t length = std::min<size_t>(4, session->longest_draft());
    std::vector<int32_t> draft(right.begin() + 1, right.begin() + 1 + static_cast<ptrdiff_t>(length));
    again([&] { return session->decode(right[0], draft); });
    for (size_t i = 1; i < 4; ++i) again([&] { return session->decode(right[i]); });
    go_on(*session, "drafted");
    again([&] { return session->rewind(start); });
    draft.assign(length, 1);  // wrong ones
    again([&] { return session->decode(right[0], draft); });
    go_on(*session, "drafted wrongly");
  }

  void prefixes() {
    SessionOptions options;
    options.prefix_cache = std::make_shared<PrefixCache>(uint64_t{64} << 20);
    for (const char* name : {"computed", "from the prefix cache"}) {
      const auto session = open(options);
      feed(*session, ids(30));
      go_on(*session, name, 2);
    }
    const auto session = open(options);
    std::vector<int32_t> other = ids(20);
    other.push_back(5);
    feed(*session, other);
    go_on(*session, "from a part of it");
  }

  void scores() {
    const auto session = open();
    const std::vector<int32_t> all = ids(27);
    std::vector<float> logprobs(all.size() - 1);
    again([&] {
      session->reset();
      return session->score(all, logprobs.data());
    });
    std::printf("scores:");
    for (const float logprob : logprobs) std::printf(" %.9g", static_cast<double>(logprob));
    std::printf("\n");
    go_on(*session, "scored");
  }

  void overflow() {
    SessionOptions options;
    options.overflow = Overflow::kShift;
    options.num_keep = 4;
    const auto session = open(options);
    feed(*session, ids(static_cast<size_t>(kContext) - 3));
    go_on(*session, "shifted", 12);
  }

  void moves() {
    SessionOptions options;
    options.prefix_cache = std::make_shared<PrefixCache>(uint64_t{64} << 20);
    const auto session = open(options);
    move(*session, true);
    feed(*session, ids(33));
    move(*session, false);
    go_on(*session, "moved here");
    move(*session, true);
    go_on(*session, "moved away");
    again([&] { return session->rewind(20); });
    move(*session, false);
    feed(*session, ids(7, 1));
    const auto fork = again([&] { return session->fork(); });
    move(*fork, true);
    const auto fork_of_fork = again([&] { return fork->fork(); });
    go_on(*session, "parent");
    go_on(*fork, "moved fork");
    move(*fork_of_fork, false);
    again([&] { return fork_of_fork->adopt(*again([&] { return fork->snapshot(); }), 25); });
    go_on(*fork_of_fork, "adopted from elsewhere");
    const std::string path = folder_ + "/moved";
    again([&] { return fork->save(path); });
    again([&] { return session->restore(path); });
    go_on(*session, "restored from elsewhere");
    moves_with_drafts(*session);
  }

  void moves_with_drafts(Session& session) {
    session.reset();
    again([&] { return session.defer(ids(12)); });
    move(session, true);
    const std::vector<int32_t> right = go_on(session, "deferred, then moved", 4);
    again([&] { return session.rewind(12); });
    if (session.longest_draft() < 3) return;
    again([&] { return session.decode(right[0], std::span(right).subspan(1)); });
    again([&] { return session.decode(right[1]); });
    move(session, false);
    go_on(session, "drafted, then moved");
  }

  std::shared_ptr<const Model> model_;
  std::string folder_;
  std::string backend_, other_;
};

}  // namespace
}  // namespace mote::test

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fprintf(stderr, "usage: run_session FILE BACKEND FOLDER [OTHER]\n");
    return 2;
  }
  mote::test::Run(argv[1], argv[2], argv[3], argc == 5 ? argv[4] : "").all();
}
