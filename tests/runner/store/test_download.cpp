#include "runner/store/download.h"

#include "tests/runner/store/fake_server.h"
#include "tests/runner/store/fixture.h"

namespace mote::store {
namespace {

using test::Answer;
using test::Client;
using test::Request;
using test::Server;

constexpr const char* kUrl = "https://example.com/models/tiny.mote";
constexpr const char* kEndpoint = "https://hub.example";

std::string listing(const std::string& file, const std::string& path = "tiny-8w.mote") {
  return R"({"sha": "c0ffee", "cardData": {"license": "mit"}, "siblings": [{"rfilename": ")" + path +
         R"(", "lfs": {"sha256": ")" + test::sha256_of(file) + R"(", "size": )" + std::to_string(file.size()) + "}}]}";
}

// A hub with one repository.
Answer hub(const std::string& file, const Request& request) {
  if (request.url == std::string(kEndpoint) + "/api/models/org/tiny?blobs=true") return {200, "", listing(file)};
  if (request.url == std::string(kEndpoint) + "/org/tiny/resolve/c0ffee/tiny-8w.mote")
    return {307, "Location: https://cdn.example/abc\r\n", ""};
  return request.url == "https://cdn.example/abc" ? test::serve(file, request) : Answer{404, "", ""};
}

class DownloadTest : public test::StoreTest {
 protected:
  std::unique_ptr<Download> begin(const std::string& what, DownloadOptions options = {}) {
    options.endpoint = kEndpoint;
    options.keep_free_bytes = 0;
    auto download = Download::begin(store_, what, options);
    EXPECT_TRUE(download.ok()) << download.status().message();
    return *std::move(download);
  }

  Status run(const std::string& what, const Server& server, const DownloadOptions& options = {}) {
    const auto download = begin(what, options);
    client_ = Client(server);
    const Status status = client_.run(*download).status();
    is_new_ = download->is_new();
    path_ = download->path();
    return status;
  }

  // What other requests than the first one ask for.
  std::vector<std::string> ranges() const {
    std::vector<std::string> found;
    for (const Request& request : client_.requests) found.push_back(request.header("Range"));
    return found;
  }

  void expect_refused(const Status& status, Code code, const std::string& text) {
    EXPECT_EQ(status.code(), code);
    EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
  }

  const std::string file_ = test::tiny_file();
  Client client_{nullptr};
  bool is_new_ = false;
  std::string path_;
};

TEST_F(DownloadTest, takes_a_file_of_the_hub) {
  const Server server = [&](const Request& request) { return hub(file_, request); };
  ASSERT_EQ(run("org/tiny", server, {.token = "secret"}).message(), "");
  EXPECT_TRUE(is_new_);
  EXPECT_EQ(path_, root_ + "/models/org/tiny/tiny-8w.mote");
  EXPECT_EQ(test::read_file(path_), file_);
  const std::optional<Manifest> manifest = read_manifest(path_);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->commit, "c0ffee");
  EXPECT_EQ(manifest->sha256, test::sha256_of(file_));
  EXPECT_EQ(manifest->license, "mit");
  EXPECT_EQ(client_.requests[1].header("Authorization"), "Bearer secret");
  EXPECT_EQ(client_.requests[2].header("Authorization"), "") << "another host gets no token";
  EXPECT_EQ(store_.find("org/tiny")->path, path_);
  ASSERT_TRUE(run("org/tiny", server).ok());
  EXPECT_FALSE(is_new_);
  EXPECT_EQ(client_.requests.size(), 1u);
  const auto left = store_.entries();
  EXPECT_EQ(left.size(), 1u);
}

TEST_F(DownloadTest, takes_an_url_and_asks_whether_it_has_changed) {
  const Server server = [&](const Request& request) {
    return request.header("If-None-Match") == "\"one\"" ? Answer{304, "", ""} : test::serve(file_, request);
  };
  ASSERT_EQ(run(kUrl, server).message(), "");
  EXPECT_EQ(path_, root_ + "/models/example.com/models/tiny.mote");
  EXPECT_EQ(test::read_file(path_), file_);
  ASSERT_TRUE(run(kUrl, server).ok());
  EXPECT_FALSE(is_new_);
  EXPECT_EQ(store_.entries().size(), 1u);
  ASSERT_TRUE(run(kUrl, server, {.sha256 = test::sha256_of(file_)}).ok());
  EXPECT_TRUE(client_.requests.empty()) << "what has the hash is the file";
  expect_refused(run(kUrl, server, {.sha256 = std::string(64, '0')}), Code::kFileUnreadable, "arrived damaged");
  EXPECT_EQ(test::read_file(path_), file_) << "the one before stays";
}

TEST_F(DownloadTest, goes_on_while_connections_break) {
  int num = 0;
  const Server server = [&](const Request& request) {
    const Answer answer = test::serve(file_, request);
    return ++num <= 3 ? test::cut(answer, 30'000) : answer;
  };
  ASSERT_EQ(run(kUrl, server).message(), "");
  EXPECT_EQ(ranges(), (std::vector<std::string>{"", "bytes=30000-", "bytes=60000-", "bytes=90000-"}));
  EXPECT_EQ(client_.requests[1].header("If-Range"), "\"one\"");
  EXPECT_EQ(test::read_file(path_), file_);
}

TEST_F(DownloadTest, gives_up_after_five_tries_that_bring_nothing_and_keeps_what_came) {
  int num = 0;
  const Server server = [&](const Request& request) {
    return ++num == 1 ? test::cut(test::serve(file_, request), 30'000) : Answer{0, "", ""};
  };
  const Status status = run(kUrl, server);
  expect_refused(status, Code::kFileUnreadable, "broke off at 30.0 kB of ");
  expect_refused(status, Code::kFileUnreadable, "(no route to host)");
  EXPECT_EQ(client_.requests.size(), 6u);
  std::vector<int64_t> waits;
  for (const Step& step : client_.steps) {
    if (step.kind == Step::Kind::kWait) waits.push_back(step.wait_ms);
  }
  EXPECT_EQ(waits, (std::vector<int64_t>{1000, 2000, 4000, 8000}));
  ASSERT_EQ(run(kUrl, [&](const Request& request) { return test::serve(file_, request); }).message(), "");
  EXPECT_EQ(ranges(), std::vector<std::string>{"bytes=30000-"});
  EXPECT_EQ(test::read_file(path_), file_);
}

TEST_F(DownloadTest, begins_anew_where_the_file_has_changed) {
  const std::string other = test::tiny_file(2);
  ASSERT_FALSE(run(kUrl, [&, num = 0](const Request& request) mutable {
                 return ++num == 1 ? test::cut(test::serve(file_, request), 90'000) : Answer{0, "", ""};
               }).ok());
  ASSERT_EQ(run(kUrl, [&](const Request& request) { return test::serve(other, request, "\"two\""); }).message(), "");
  EXPECT_EQ(test::read_file(path_), other);
}

TEST_F(DownloadTest, what_was_said_of_a_file_binds_nobody_while_nothing_has_come) {
  const auto cut_to_nothing = [&](const Request& request) { return test::cut(test::serve(file_, request), 0); };
  expect_refused(run(kUrl, cut_to_nothing), Code::kFileUnreadable, "broke off at 0 B of ");
  const std::string other = test::tiny_file(1, 2);
  ASSERT_EQ(run(kUrl, [&](const Request& request) { return test::serve(other, request); }).message(), "");
  EXPECT_EQ(client_.requests.size(), 1u);
  EXPECT_EQ(test::read_file(path_), other);
}

TEST_F(DownloadTest, a_file_that_changes_for_ever_is_given_up) {
  int num = 0;
  const Server server = [&](const Request& request) {
    const std::string etag = "\"" + std::to_string(++num) + "\"";
    return test::cut(test::serve(file_, request, etag), 1000 * static_cast<size_t>(num));
  };
  expect_refused(run(kUrl, server), Code::kFileUnreadable, "changes while it comes");
}

TEST_F(DownloadTest, mixed_contents_are_refused_without_a_hash_too) {
  const std::string other = test::tiny_file(2);
  ASSERT_EQ(file_.size(), other.size());
  int num = 0;
  const Server server = [&](const Request& request) {  // without an ETag, and it changes
    return ++num == 1 ? test::cut(test::serve(file_, request, ""), file_.size() - 1000)
                      : test::serve(other, request, "");
  };
  const Status status = run(kUrl, server);
  expect_refused(status, Code::kInvalidProgram, "arrived damaged and was deleted");
  EXPECT_TRUE(store_.entries().empty());
}

TEST_F(DownloadTest, waits_as_the_server_asks) {
  int num = 0;
  const Server server = [&](const Request& request) {
    return ++num == 1 ? Answer{503, "Retry-After: 30", ""} : test::serve(file_, request);
  };
  ASSERT_EQ(run(kUrl, server).message(), "");
  EXPECT_EQ(client_.steps[1].wait_ms, 30'000);
  const auto hours = [](const Request&) { return Answer{429, "Retry-After: 7200", ""}; };
  expect_refused(run("https://example.com/other.mote", hours), Code::kFileUnreadable,
                 "it asks to come again in 7200 s");
}

TEST_F(DownloadTest, an_address_that_is_good_no_more_is_asked_for_again) {
  int num = 0;
  const Server server = [&](const Request& request) {
    if (request.url == kUrl) return Answer{302, "Location: https://cdn.example/" + std::to_string(num), ""};
    return ++num == 1 ? Answer{403, "", ""} : test::serve(file_, request);
  };
  ASSERT_EQ(run(kUrl, server).message(), "");
  EXPECT_EQ(client_.requests.back().url, "https://cdn.example/1");
  const auto circle = [](const Request& request) { return Answer{302, "Location: " + request.url + "x", ""}; };
  expect_refused(run("https://example.com/other.mote", circle), Code::kFileUnreadable, "for ever");
}

TEST_F(DownloadTest, lengths_that_nobody_tells_are_read_from_the_file) {
  int num = 0;
  const Server server = [&](const Request& request) {
    Answer answer = test::serve(file_, request);
    if (answer.status == 200) answer.headers.clear();  // in chunks
    if (++num == 1) answer.body.resize(70'000);        // and ended early, unnoticed
    return answer;
  };
  ASSERT_EQ(run(kUrl, server).message(), "");
  EXPECT_EQ(test::read_file(path_), file_);
}

TEST_F(DownloadTest, refuses_what_cannot_run_here_before_all_of_it_came) {
  const auto serving = [](std::string file) {
    return [file = std::move(file)](const Request& request) { return test::serve(file, request); };
  };
  std::string newer = file_;
  newer[8] = 99;
  expect_refused(run(kUrl, serving(newer)), Code::kUnsupportedVersion, "version = 99: this runner reads version");
  expect_refused(run(kUrl, serving("GGUF" + std::string(1000, 'x'))), Code::kInvalidProgram, "GGUF");
  expect_refused(run(kUrl, serving("<html>" + std::string(100, 'x'))), Code::kInvalidProgram, "not a .mote file");
  expect_refused(run(kUrl, serving("")), Code::kInvalidProgram, "0 bytes");
  std::string longer = file_ + "x";
  expect_refused(run(kUrl, serving(longer)), Code::kInvalidProgram, "truncated or appended to");
  const test::Bytes delegated = test::tiny_model({.delegates = true}).build();
  const std::string elsewhere(reinterpret_cast<const char*>(delegated.data()), delegated.size());
  expect_refused(run(kUrl, serving(elsewhere)), Code::kUnsupportedBackend, "this build has no such backend");
  EXPECT_TRUE(store_.entries().empty());
}

TEST_F(DownloadTest, room_and_metered_networks_are_asked_for_first) {
  const Server server = [&](const Request& request) { return hub(file_, request); };
  DownloadOptions options;
  options.endpoint = kEndpoint;
  options.keep_free_bytes = INT64_MAX / 2;
  auto download = *Download::begin(store_, "org/tiny", options);
  expect_refused(Client(server).run(*download).status(), Code::kFileUnwritable, "needs ");
  download.reset();
  for (const bool is_allowed : {false, true}) {
    const auto metered = begin("org/tiny", {.allow_metered = is_allowed});
    metered->set_metered(true);
    const Status status = Client(server).run(*metered).status();
    if (is_allowed) {
      EXPECT_EQ(status.message(), "");
    } else {
      expect_refused(status, Code::kInvalidState, "over a network that is metered");
    }
  }
}

TEST_F(DownloadTest, of_two_one_waits) {
  const Server server = [&](const Request& request) { return hub(file_, request); };
  auto first = begin("org/tiny");
  ASSERT_TRUE(first->next().ok());
  const auto second = begin("org/tiny");
  EXPECT_EQ(second->next()->reason, "another process downloads org/tiny");
  first.reset();
  ASSERT_EQ(Client(server).run(*second).status().message(), "");
}

TEST_F(DownloadTest, the_hub_says_what_is_wrong) {
  const auto answering = [](int status, std::string code) {
    return [=](const Request& request) {
      if (request.url.find("author=") != std::string::npos) return Answer{200, "", R"([{"id": "ogr/other"}])"};
      if (request.url.find("search=") != std::string::npos) return Answer{200, "", R"([{"id": "org/tiny"}])"};
      return Answer{status, code.empty() ? "" : "X-Error-Code: " + code, ""};
    };
  };
  expect_refused(run("org/x", answering(403, "GatedRepo")), Code::kFileUnreadable, "is gated: accept its terms");
  expect_refused(run("org/x@v9", answering(404, "RevisionNotFound")), Code::kFileNotFound, "has no revision 'v9'");
  expect_refused(run("ogr/tiny", answering(401, "RepoNotFound")), Code::kFileNotFound,
                 "the hub has no model 'ogr/tiny': did you mean 'org/tiny'?");
  expect_refused(run("org/x", answering(403, "")), Code::kFileUnreadable, "status 403: the token has no right to it");
  expect_refused(run("org/x", answering(500, "Broken")), Code::kFileUnreadable, "status 500");
  expect_refused(run("org/x", answering(0, "")), Code::kFileUnreadable, "cannot be reached (no route to host)");
  expect_refused(run("org/x", [](const Request&) { return Answer{200, "", "{"}; }), Code::kFileUnreadable, "no list");
  const auto evil = [](const Request&) { return Answer{200, "", R"({"siblings": [{"rfilename": "../../x.mote"}]})"}; };
  expect_refused(run("org/x", evil), Code::kFileNotFound, "has no .mote file");
  const auto two = [](const Request&) {
    return Answer{200, "", R"({"siblings": [{"rfilename": "a-8w.mote"}, {"rfilename": "a-4w.mote"}]})"};
  };
  expect_refused(run("org/x", two), Code::kInvalidArgument, "has several files: say which: org/x:a-4w, org/x:a-8w");
}

TEST_F(DownloadTest, what_cannot_be_asked_for) {
  for (const char* what : {"", "tiny", "./org/tiny", "ftp://a/b.mote", "https://a.example/"})
    EXPECT_EQ(Download::begin(store_, what, {}).status().code(), Code::kInvalidArgument) << what;
  EXPECT_FALSE(Download::begin(store_, "org/x", {.token = "a\r\nHost: b"}).ok());
  EXPECT_FALSE(Download::begin(store_, kUrl, {.sha256 = "xyz"}).ok());
  EXPECT_FALSE(Download::begin(store_, "org/x", {.endpoint = "hub"}).ok());
}

// A server that is wrong in many ways, of a file that changes now and then.
class FaultyServer {
 public:
  FaultyServer(std::vector<std::string> versions, bool has_etags, uint64_t seed)
      : versions_(std::move(versions)), has_etags_(has_etags), random_(seed) {}

  Answer operator()(const Request& request) {
    if (request.url.find("/api/") != std::string::npos) return {200, "", listing(file())};
    if (versions_.size() > 1 && random_() % 10 == 0) version_ = random_() % versions_.size();
    const std::string etag = has_etags_ ? "\"v" + std::to_string(version_) + "\"" : "";
    Answer answer = test::serve(file(), request, etag);
    std::string& body = answer.body;
    switch (random_() % 16) {
      case 0: return {0, "", ""};
      case 1: return {503, "Retry-After: 1", "busy"};
      case 2: return {302, "Location: /elsewhere", ""};
      case 3: return {416, "", ""};
      case 4: return test::serve(file(), {request.url, ""}, etag);                       // knows no ranges
      case 5: return test::serve(file(), {request.url, "Range: bytes=65536-\n"}, etag);  // another one
      case 6: answer.headers = "Content-Length: " + std::to_string(random_() % 300'000) + "\n"; break;
      case 7: body += body; break;
      case 8:
        if (body.size() > 140'000) std::swap_ranges(body.begin(), body.begin() + 65536, body.begin() + 65536);
        break;
      case 9:
        if (body.size() > 70'000) body.erase(random_() % 4000, 65536);
        break;
      case 10:
        if (!body.empty()) body[random_() % body.size()] ^= 4;
        break;
      case 11: body.resize(random_() % (body.size() + 1)); break;
      case 12: answer.headers += "\r\nContent-Encoding: gzip"; break;
      default: return test::cut(answer, random_() % 100'000);
    }
    return answer;
  }

 private:
  const std::string& file() const { return versions_[version_]; }

  std::vector<std::string> versions_;
  bool has_etags_;
  std::mt19937_64 random_;
  size_t version_ = 0;
};

// Runs that are killed at random, until one of them is through or many have failed. Whatever comes of it is right.
TEST_F(DownloadTest, whatever_servers_do_the_result_is_right_or_refused) {
  const std::vector<std::string> versions = {file_, test::tiny_file(2), test::tiny_file(3)};
  int num_through = 0;
  for (uint64_t seed = 0; seed < 90; ++seed) {
    const bool is_hub = seed % 3 == 0, has_hash = seed % 3 == 1;
    FaultyServer server(is_hub || has_hash ? std::vector{file_} : versions, seed % 2 == 0, seed);
    std::mt19937_64 random(seed);
    const DownloadOptions options{.sha256 = has_hash ? test::sha256_of(file_) : ""};
    std::string path;
    for (int tries = 0; tries < 12 && path.empty(); ++tries) {
      const auto download = begin(is_hub ? "org/tiny" : kUrl, options);
      Client client([&](const Request& request) { return server(request); }, random());
      const auto step = client.run(*download, static_cast<int>(random() % 12));
      if (step.ok() && step->kind == Step::Kind::kDone) path = download->path();
      ASSERT_EQ(step.ok(), step.status().message().empty());
      ASSERT_NE(step.status().code(), Code::kInternal) << step.status().message();
    }
    if (path.empty()) continue;
    ++num_through;
    const std::string found = test::read_file(path);
    ASSERT_TRUE(std::ranges::find(versions, found) != versions.end()) << "seed " << seed;
    ASSERT_TRUE(found == file_ || !(is_hub || has_hash)) << "seed " << seed;
    ASSERT_EQ(read_manifest(path)->sha256, test::sha256_of(found));
    ASSERT_TRUE(store_.remove(store_.entries()[0]).ok());
  }
  EXPECT_GT(num_through, 40);
}

}  // namespace
}  // namespace mote::store
