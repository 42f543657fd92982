#include "rl/reward/http_scorer.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "rl/data/json_text.h"
#include "rl/hub/http.h"
#include "rl/reward/process_scorer.h"
#include "runtime/core/json.h"
#include "runtime/core/thread.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

namespace {

HttpRequest make_request(const HttpScorerOptions& options, const json& samples) {
  HttpRequest request{.url = options.url};
  request.headers = options.headers;
  request.headers.push_back("Content-Type: application/json");
  request.total_max = options.timeout;
  request.silence_max = std::chrono::ceil<std::chrono::seconds>(options.timeout);
  request.connect_max = std::min(request.connect_max, request.silence_max);
  request.post = json{{"samples", samples}}.dump(-1, ' ', false, json::error_handler_t::replace);
  return request;
}

/// Python's json writes numbers that are none, which JSON has no word for: null in their place,
/// which is no score either.
std::string without_nan(std::string_view body) {
  std::string text;
  bool quoted = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const std::string_view rest = body.substr(i);
    if (quoted && body[i] == '\\' && i + 1 < body.size()) {
      text += rest.substr(0, 2);
      ++i;
      continue;
    }
    if (body[i] == '"') quoted = !quoted;
    std::size_t taken = 0;
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (!quoted && rest.starts_with(word)) taken = word.size();
    }
    text += taken > 0 ? "null" : rest.substr(0, 1);
    if (taken > 0) i += taken - 1;
  }
  return text;
}

/// The list of scores in an answer; empty with `why` when it isn't one.
json read_scores(const std::string& body, std::size_t expected, std::string& why) {
  json tree = runtime::parse_json(body);
  if (tree.is_discarded()) tree = runtime::parse_json(without_nan(body));
  if (tree.is_object() && tree.contains("scores")) tree = json(tree["scores"]);
  if (!tree.is_array()) {
    why = "it answered no {\"scores\": [...]} but " + excerpt(body, 100);
    return json::array();
  }
  if (tree.size() == expected) return tree;
  why = "it answered " + std::to_string(tree.size()) + " scores for " + std::to_string(expected) +
        " samples";
  return json::array();
}

/// A number, {"score": number} with further numbers, or what is wrong with it.
Score read_score(const json& value) {
  if (value.is_number()) return score_of({{"score", value}});
  if (!value.is_object())
    return score_of(
        {{"invalid", "the server gave " + value.dump().substr(0, 100) + ", not a number"}});
  json extra = value;
  extra.erase("score");
  return score_of({{"score", value.value("score", json())}, {"extra", extra}});
}

bool worth_retrying(int status) { return status == 429 || status >= 500; }

}  // namespace

Result<std::unique_ptr<HttpScorer>> HttpScorer::create(HttpScorerOptions options) {
  constexpr const char* kKey = "reward.http.url";
  if (!options.url.starts_with("http://") && !options.url.starts_with("https://")) {
    return runtime::invalid_argument(
        std::string(kKey) + ": expected an address that begins with http:// or https://, got '" +
        options.url + "'");
  }
  HttpClient client;
  const Result<HttpAnswer> answer = client.perform(make_request(options, json::array()));
  if (!answer.ok())
    return answer.status().with_context(std::string(kKey) +
                                        ": the reward server cannot be reached");
  const std::string said =
      std::string(kKey) + ": " + options.url + " answered " + std::to_string(answer->status);
  if (answer->status == 401 || answer->status == 403)
    return runtime::invalid_argument(
        said +
        ": set reward.http.auth_env to the name of the environment variable that holds its token");
  if (answer->status == 404) return runtime::invalid_argument(said + ": is the path right?");
  return std::unique_ptr<HttpScorer>(new HttpScorer(std::move(options)));
}

ScoredBatch HttpScorer::score_chunk(std::span<const ScoreRequest> requests) const {
  HttpClient client;
  json samples = json::array();
  for (const ScoreRequest& request : requests) samples.push_back(request_json(request));
  const HttpRequest request = make_request(options_, samples);
  ScoredBatch batch;
  Score failed;
  for (int attempt = 0; attempt <= options_.retries; ++attempt) {
    if (attempt > 0) {
      std::this_thread::sleep_for(options_.pause * (1 << std::min(attempt - 1, 6)));
      ++batch.counts.retries;
    }
    const Result<HttpAnswer> answer = client.perform(request);
    if (!answer.ok()) {
      const bool late = answer.status().code() == runtime::ErrorCode::kDeadlineExceeded;
      failed.failure = late ? ScoreFailure::kTimeout : ScoreFailure::kError;
      failed.message = answer.status().message();
      ++(late ? batch.counts.timeouts : batch.counts.errors);
      continue;
    }
    std::string why = options_.url + " answered " + std::to_string(answer->status) + ": " +
                      excerpt(answer->body, 200);
    if (answer->status == 200) {
      const json scores = read_scores(answer->body, requests.size(), why = "");
      if (why.empty()) {
        for (const json& score : scores) batch.scores.push_back(read_score(score));
        return batch;
      }
      why = options_.url + ": " + why;
    }
    failed.failure = answer->status == 200 ? ScoreFailure::kInvalid : ScoreFailure::kError;
    failed.message = why;
    ++batch.counts.errors;
    if (!worth_retrying(answer->status)) break;
  }
  batch.scores.assign(requests.size(), failed);
  return batch;
}

Result<ScoredBatch> HttpScorer::score(std::span<const ScoreRequest> requests) {
  const std::size_t chunks = (requests.size() + options_.batch_size - 1) / options_.batch_size;
  std::vector<ScoredBatch> parts(chunks);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t chunk = next++; chunk < chunks; chunk = next++) {
      const std::size_t begin = chunk * options_.batch_size;
      parts[chunk] = score_chunk(
          requests.subspan(begin, std::min(options_.batch_size, requests.size() - begin)));
    }
  };
  const std::size_t parallel = std::min(options_.concurrency, chunks);
  runtime::HelperThreads others(parallel > 0 ? parallel - 1 : 0, work);
  work();
  others.join();
  ScoredBatch batch;
  for (ScoredBatch& part : parts) {
    batch.counts.add(part.counts);
    std::move(part.scores.begin(), part.scores.end(), std::back_inserter(batch.scores));
  }
  return batch;
}

}  // namespace rl
