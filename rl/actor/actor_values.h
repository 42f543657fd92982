// Values that actors of a run are made from, and that their methods return to the controller.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "rl/batch/rollout_batch.h"
#include "rl/rollout/partial_prompt.h"
#include "rl/worker/token_estimates.h"
#include "runtime/call/object_ref.h"

namespace rl {

/// What every member of a group is made from.
struct WorkerSpec {
  std::string config;      // Config::serialize()
  std::string model = {};  // a folder or file that the worker's node sees
  /// The model that adapters name as theirs: the same, or its name on the hub.
  std::string model_name = {};
  std::string adapter = {};  // a folder of an adapter on it, or empty
  std::string group = {};    // unique to this group of this run
  std::int32_t rank = 0;
  std::int32_t size = 1;
  std::int32_t threads = 1;
  std::string device = {};      // where its model computes, see find_device()
  bool generates_only = false;  // a policy that is never trained: its optimizer has no state
  std::string run_folder = {};  // of the run, absolute: checkpoints are written below it

  auto fields() {
    return std::tie(config, model, model_name, adapter, group, rank, size, threads, device,
                    generates_only, run_folder);
  }
};

/// A step's samples of one worker: the controller passes the reference on and reads the summary.
struct Generated {
  runtime::ObjectRef<RolloutBatch> batch;
  RolloutSummary summary;

  auto fields() { return std::tie(batch, summary); }
};

/// A step's samples of one worker, with partial rollouts; see PartialBatch.
struct PartlyGenerated {
  Generated generated;
  std::vector<std::int64_t> finished;
  std::vector<std::int64_t> oldest;
  std::vector<std::int64_t> newest;
  runtime::ObjectRef<std::vector<PartialPrompt>> rest;

  auto fields() { return std::tie(generated, finished, oldest, newest, rest); }
};

/// What a critic says of one worker's samples: the policy gets the reference, the controller reads
/// the summary.
struct Estimated {
  runtime::ObjectRef<TokenEstimates> estimates;
  EstimateSummary summary;

  auto fields() { return std::tie(estimates, summary); }
};

/// What the reference says of one worker's samples.
struct Referenced {
  runtime::ObjectRef<std::vector<float>> logprobs;
  std::vector<double> kl_penalties;  // see ReferenceScores

  auto fields() { return std::tie(logprobs, kl_penalties); }
};

}  // namespace rl
