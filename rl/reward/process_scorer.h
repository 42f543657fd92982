// Scores by child processes: a user's Python file, or a shared library.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>

#include "rl/reward/prepared_calls.h"
#include "rl/reward/scorer.h"

namespace rl {

/// Of a scorer's child processes, whichever kind they are.
struct ScoringLimits {
  std::size_t workers = 8;
  std::chrono::milliseconds timeout{10'000};  // of a call
  std::int64_t memory_bytes = 0;              // of a process's address space; 0: no limit
  int retries = 2;                            // of a call, after its first try
  bool overtake = true;                       // see ProcessPoolOptions
};

/// How a Python function is called. One form is for a sample by `data_source`, `solution_str`,
/// `ground_truth` and `extra_info`, as verl's naive reward manager does it. The other, its batch
/// manager's, is by `data_sources`, `solution_strs`, `ground_truths` and `extra_infos`, for a list
/// of scores. These are lists of one sample each here.
enum class CallForm { kSample, kLists };

class ProcessScorer : public Scorer {
 public:
  /// verl's compute_score(data_source, solution_str, ground_truth, extra_info, **kwargs) of a
  /// Python file, run by the python3 on PATH (or STARLING_PYTHON). The file is loaded here once.
  /// kNotFound: there is no such file. kInvalidArgument: no such function, or what Python says of
  /// the file, with the traceback. kUnavailable: no Python.
  static runtime::Result<std::unique_ptr<ProcessScorer>> python(
      const std::filesystem::path& file, const std::string& function,
      const nlohmann::ordered_json& kwargs, const ScoringLimits& limits,
      CallForm form = CallForm::kSample);

  /// A library with the functions of reward_library.h, loaded by the program starling-reward-host.
  /// Errors: as python(), and kNotFound: no such program.
  static runtime::Result<std::unique_ptr<ProcessScorer>> library(const std::filesystem::path& file,
                                                                 const ScoringLimits& limits);

  runtime::Result<ScoredBatch> score(std::span<const ScoreRequest> requests) override;
  bool prepares() const override { return true; }
  void prepare(std::span<const ScoreRequest> requests) override;

 private:
  ProcessScorer(std::string what, std::unique_ptr<ProcessPool> pool)
      : what_(std::move(what)), calls_(std::move(pool)) {}
  void log_first(const std::string& kind, const std::string& text);

  std::string what_;  // "compute_score of reward.py"
  PreparedCalls calls_;
  std::set<std::string> logged_;  // kinds of failures that the log has seen
};

/// The request as scorers see it; verl's names.
nlohmann::json request_json(const ScoreRequest& request);

/// The score in {"score": x, "extra": {...}}, or the failure that it is: {"invalid": why}.
Score score_of(const nlohmann::json& message);

}  // namespace rl
