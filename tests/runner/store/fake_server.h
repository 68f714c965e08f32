// A server in memory, and what a language does between it and a download.
#pragma once

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "runner/store/download.h"

namespace mote::test {

struct Answer {
  int status = 200;
  std::string headers;
  std::string body;
  bool breaks = false;  // the connection, after the body
};

struct Request {
  std::string url, headers;
  std::string header(std::string_view name) const { return std::string(store::Headers(headers).find(name)); }
};

using Server = std::function<Answer(const Request&)>;

// The bytes from where a request asks on, or all of them.
inline Answer serve(const std::string& file, const Request& request, const std::string& etag = "\"one\"") {
  const std::string range = request.header("Range"), condition = request.header("If-Range");
  const std::string etag_line = etag.empty() ? "" : "ETag: " + etag + "\r\n";
  if (range.empty() || (!condition.empty() && condition != etag))
    return {200, etag_line + "Content-Length: " + std::to_string(file.size()) + "\r\n", file};
  const size_t from = std::stoul(range.substr(6));
  if (from >= file.size()) return {416, "Content-Range: bytes */" + std::to_string(file.size()) + "\r\n", ""};
  const std::string size = std::to_string(file.size());
  return {
      206,
      etag_line + "Content-Range: bytes " + std::to_string(from) + "-" + std::to_string(file.size() - 1) + "/" + size,
      file.substr(from)};
}

inline Answer cut(Answer answer, size_t bytes) {
  answer.body.resize(std::min(bytes, answer.body.size()));
  answer.breaks = true;
  return answer;
}

// Goes through a download, waits left out; the steps that were made are kept.
class Client {
 public:
  explicit Client(Server server, uint64_t seed = 1) : server_(std::move(server)), random_(seed) {}

  // max_pieces: after as many pieces of bodies it stops, as a process that is killed; what it returns then is a step
  // that is not done.
  Result<store::Step> run(store::Download& download, int max_pieces = 1 << 30) {
    for (int num_pieces = 0;;) {
      MOTE_ASSIGN(const store::Step step, download.next());
      steps.push_back(step);
      if (step.kind == store::Step::Kind::kDone) return step;
      if (step.kind == store::Step::Kind::kWait) {
        if (step.reason.starts_with("another process")) return step;
        continue;
      }
      requests.push_back({step.url, step.headers});
      const Answer answer = server_(requests.back());
      if (answer.status == 0) {
        MOTE_RETURN_IF_ERROR(download.end("no route to host"));
        continue;
      }
      MOTE_ASSIGN(const bool is_wanted, download.respond(answer.status, answer.headers));
      for (size_t at = 0; is_wanted && at < answer.body.size();) {
        if (num_pieces++ == max_pieces) return step;
        const size_t count = std::min<size_t>(answer.body.size() - at, 1 + random_() % 70'000);
        MOTE_RETURN_IF_ERROR(download.write(std::as_bytes(std::span(answer.body).subspan(at, count))));
        at += count;
      }
      MOTE_RETURN_IF_ERROR(download.end(answer.breaks ? "the connection broke" : ""));
    }
  }

  std::vector<store::Step> steps;
  std::vector<Request> requests;

 private:
  Server server_;
  std::mt19937_64 random_;
};

}  // namespace mote::test
