// EarlyScorer: a scorer that begins with responses before their scores are asked for.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "rl/reward/scorer.h"
#include "runtime/core/thread.h"

namespace rl {

struct EarlyScoring {
  std::size_t batch_size = 1;   // requests of one call, at most
  std::size_t concurrency = 1;  // calls at once
};

/// A scorer that waits for others, such as a server. Threads hand it prepared requests, as many
/// together as have come while others were in flight. score() finds their scores, or waits for the
/// rest. Scores are those of score() alone, if a request's score does not depend on which
/// others it is asked with. `inner` must bear several calls of score() at once. A resource; one
/// thread at a time calls its methods.
class EarlyScorer : public Scorer {
 public:
  EarlyScorer(std::unique_ptr<Scorer> inner, const EarlyScoring& options)
      : inner_(std::move(inner)), options_(options) {}
  /// Waits for the calls that are in flight.
  ~EarlyScorer() override;

  bool prepares() const override { return true; }
  /// A failure of the call is told by score().
  void prepare(std::span<const ScoreRequest> requests) override;
  /// Requests that were prepared and are not asked for are forgotten; what became of their tries is
  /// counted.
  runtime::Result<ScoredBatch> score(std::span<const ScoreRequest> requests) override;
  runtime::Status check_row(const ScoreRequest& row) const override {
    return inner_->check_row(row);
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string>;

  static Key key_of(const ScoreRequest& request);
  std::size_t submit(const ScoreRequest& request);
  void start_threads();
  void join();
  void work();
  /// Hands over what waits.
  void work_off(std::unique_lock<std::mutex>& lock);

  std::unique_ptr<Scorer> inner_;
  EarlyScoring options_;
  std::vector<runtime::Thread> threads_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable answered_;
  std::size_t working_ = 0;  // threads that will look at waiting_ again
  std::size_t submitted_ = 0;
  std::deque<std::pair<std::size_t, ScoreRequest>> waiting_;
  std::map<Key, std::deque<std::size_t>> prepared_;  // as often as it was prepared
  std::map<std::size_t, Score> scores_;
  ScoreCounts counts_;
  runtime::Status failure_;
};

}  // namespace rl
