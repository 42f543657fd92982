// Scorer: the source of samples' scores: rules, a user's Python file, a server,
// a shared library. Torch-free.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rl/reward/compared.h"
#include "runtime/core/result.h"

namespace rl {

/// Why a sample has no score.
enum class ScoreFailure {
  kNone,     // it has one
  kTimeout,  // every try exceeded the time limit
  kCrash,    // the process that scored it died
  kError,    // the scorer said that it failed: a Python exception, a server's 5xx
  kInvalid,  // it answered with something that is no finite number
};

struct Score {
  double value = 0.0;  // meaningless after a failure
  ScoreFailure failure = ScoreFailure::kNone;
  std::string message;                    // of a failure
  std::map<std::string, double> extra;    // further numbers that the scorer gave, for metrics
  std::string rule = {};                  // the rule's name, where one scored
  std::optional<Compared> compared = {};  // and what it compared

  bool ok() const { return failure == ScoreFailure::kNone; }
};

/// One response with all that may be known for judging it. Borrows nothing.
struct ScoreRequest {
  std::string data_source;
  std::string response;
  std::string ground_truth;
  std::string extra_info;  // JSON, or empty
  std::string where;       // the row, for messages
  std::string prompt =
      {};  // JSON, text or a list of messages; empty unless a reward model asks for it
  bool has_ground_truth = true;  // otherwise Python and servers get None
  std::optional<Score> known =
      {};  // its score, or why it cannot have one, where that is not for scorers to say
  bool ground_truth_is_json = false;  // as DataRow has it: Python and servers get the value
};

/// What went wrong on the way, single tries counted.
struct ScoreCounts {
  std::int64_t timeouts = 0;
  std::int64_t crashes = 0;
  std::int64_t errors = 0;
  std::int64_t retries = 0;
  std::int64_t overtaken = 0;  // slow calls whose second try answered first

  void add(const ScoreCounts& other) {
    timeouts += other.timeouts;
    crashes += other.crashes;
    errors += other.errors;
    retries += other.retries;
    overtaken += other.overtaken;
  }
};

struct ScoredBatch {
  std::vector<Score> scores;  // as many as there were requests, in their order
  ScoreCounts counts;
};

/// A resource; one call at a time.
class Scorer {
 public:
  virtual ~Scorer() = default;

  /// Scores all. A sample that cannot be scored is a failed Score, not a failure of the call. The
  /// call fails for what is wrong with a row (kInvalidArgument, with its `where`) or with all of
  /// them.
  virtual runtime::Result<ScoredBatch> score(std::span<const ScoreRequest> requests) = 0;

  /// Whether workers need one another to score: score() of all of them is called together, also of
  /// no requests.
  virtual bool scores_together() const { return false; }

  /// Whether prepare() does anything.
  virtual bool prepares() const { return false; }

  /// These will be among the requests of the next score(): may begin with them, and returns at
  /// once.
  virtual void prepare(std::span<const ScoreRequest> requests) {}

  /// What can be known to be wrong with a row before there is a response to it.
  virtual runtime::Status check_row(const ScoreRequest& row) const { return {}; }
};

}  // namespace rl
