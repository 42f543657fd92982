// Scores by a server: JSON in, scores out.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "rl/reward/scorer.h"

namespace rl {

struct HttpScorerOptions {
  std::string url;
  std::vector<std::string> headers;           // "Authorization: Bearer ..."
  std::size_t batch_size = 64;                // samples of a request
  std::size_t concurrency = 4;                // requests at once
  std::chrono::milliseconds timeout{10'000};  // of a request
  int retries = 2;
  std::chrono::milliseconds pause{
      500};  // before the first retry; each further one waits twice as long
};

/// POSTs {"samples": [{"data_source", "solution_str", "ground_truth", "extra_info"}, ...]} and
/// expects {"scores": [...]}, or the list alone: of each sample a number or {"score": number, ...}.
/// No connection, silence, 429 and 5xx are tried again. Several calls of score() may be on their
/// way at once.
class HttpScorer : public Scorer {
 public:
  /// Asks the server about no samples, so that one that isn't there is known before the first step.
  /// kUnavailable: no connection, with the address; kInvalidArgument: 401, 403 or 404, or no http
  /// address.
  static runtime::Result<std::unique_ptr<HttpScorer>> create(HttpScorerOptions options);

  runtime::Result<ScoredBatch> score(std::span<const ScoreRequest> requests) override;

 private:
  explicit HttpScorer(HttpScorerOptions options) : options_(std::move(options)) {}
  ScoredBatch score_chunk(std::span<const ScoreRequest> requests) const;

  HttpScorerOptions options_;
};

}  // namespace rl
