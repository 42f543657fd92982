// The files of a run, read for a report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "rl/metrics/metrics.h"
#include "runtime/core/result.h"

namespace rl {

/// One response, as `trainer.rollout_data_dir` keeps it. Lists are of one length, one entry a token
/// of the output, or empty where the file has none.
struct RolloutSample {
  std::string input;
  std::string output;
  std::string expected;
  double score = 0.0;
  std::vector<std::string> tokens;  // texts that make up `output`
  std::vector<double> logprobs;     // natural, as sampled
  std::vector<double> advantages;
  std::vector<double> mask;  // 0: a tool or a user wrote the token; empty: the policy chose all
};

struct StepSamples {
  std::int64_t step = 0;
  std::vector<RolloutSample> samples;
};

struct RunLog {
  std::string name;                   // of the folder
  std::vector<StepRecord> records;    // in the order of the file; the warm start's have a phase
  std::string config;                 // config.yaml, empty without one
  std::vector<StepSamples> rollouts;  // ascending by step; none where nothing was kept
};

/// Reads `run`/metrics.jsonl, config.yaml and the files `rollouts`/STEP.jsonl. kNotFound: no such
/// folder, or no metrics in it, with the cure (trainer.logger=[console,file]); kInvalidArgument: a
/// file that is something else, by name and line. A last line cut short by a kill is left out.
runtime::Result<RunLog> read_run(const std::filesystem::path& run,
                                 const std::filesystem::path& rollouts);

}  // namespace rl
