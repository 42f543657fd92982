// StepBatch: the samples of one step as the controller knows them. Their tokens stay with the
// workers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rl/actor/actor_values.h"
#include "rl/batch/balance.h"
#include "rl/batch/batch_plan.h"
#include "rl/batch/rollout_batch.h"
#include "rl/feed/prompt_feed.h"
#include "rl/metrics/metrics.h"
#include "rl/reward/reward_function.h"
#include "runtime/call/object_ref.h"
#include "runtime/core/result.h"

namespace rl {

/// One response: numbers about it.
struct Sample {
  std::int64_t prompt_tokens = 0;
  std::int64_t response_tokens = 0;  // all that follow the prompt
  std::int64_t learned_tokens = 0;   // those of them that are learned
  std::int64_t turns = 0;            // messages of its conversation; 0: unknown
  bool stopped = true;               // by a stop token; else by the length limit
  float mean_logprob = 0.0F;         // of the learned tokens

  bool is_scored = true;  // false: no score, so that it may not be trained on
  double score = 0.0;
  double unpenalized = 0.0;                   // the score before what the length took off
  std::optional<double> baseline = {};        // the greedy response's score, for ReMax
  std::vector<double> components = {};        // the reward's numbers that the estimator asks for
  std::map<std::string, double> extras = {};  // all numbers of the reward besides the score
  double scaled = 0.0;                        // the score, scaled by earlier steps'
  double reward = 0.0;                        // the same, less the KL penalty
  float advantage = 0.0F;                     // unless each token has its own
};

/// The responses to one prompt.
struct SampleGroup {
  std::int64_t prompt = 0;  // its number in the step
  std::int64_t row = -1;    // of the data set; -1: unknown
  RewardTask task = {};
  std::int64_t leaf = 0;    // of its mini-batch, see GradientRound
  PromptPlace origin = {};  // the samples' worker, and their row in its batch
  std::vector<Sample> samples = {};
};

/// One worker's samples.
struct WorkerShare {
  runtime::ObjectRef<RolloutBatch> batch = {};
  std::vector<SampleGroup> groups = {};  // in the batch's order
  std::vector<std::int64_t> mini_batch_offsets{0};
  Referenced reference = {};  // what the reference says of the samples; no object: nothing
  Referenced taught = {};     // the same of the teachers

  std::size_t size() const;  // samples
};

/// A value. Its lists by worker are as long as there are workers.
struct StepBatch {
  std::vector<WorkerShare> shares = {};             // by worker
  std::vector<RewardReport> reports = {};           // of all rounds of generation
  std::vector<std::int64_t> generated_tokens = {};  // by worker, before samples were moved
  Metrics metrics = {};                             // of generation
  std::int64_t epoch = 0;
  std::int64_t leaves = 0;  // that each mini-batch is cut into; 0: it is not

  /// As workers generated it: samples of lists `generated`, `samples_per_prompt` of each prompt.
  /// kInternal: a worker made another number of samples.
  static runtime::Result<StepBatch> of(StepPrompts prompts, const std::vector<Generated>& generated,
                                       std::int64_t samples_per_prompt);

  std::int64_t prompts() const;
  std::size_t size() const;  // samples

  /// The batches, by worker.
  std::vector<runtime::ObjectRef<RolloutBatch>> batches() const;
  std::vector<std::vector<RewardTask>> tasks() const;
  std::vector<PromptShard> shards() const;
  std::vector<std::vector<std::int64_t>> group_sizes() const;
  std::vector<std::int64_t> tokens() const;                         // prompts and responses
  std::vector<std::vector<std::int64_t>> tokens_by_sample() const;  // the same of each sample
  RowLeaves sample_leaves() const;

  /// What `of` (a member of Sample or a function of one) says of each sample, by worker.
  template <class Of>
  auto by_worker(Of of) const {
    std::vector<std::vector<std::decay_t<std::invoke_result_t<Of, const Sample&>>>> lists;
    for (const WorkerShare& share : shares) {
      auto& list = lists.emplace_back();
      for (const SampleGroup& group : share.groups) {
        for (const Sample& sample : group.samples) list.push_back(std::invoke(of, sample));
      }
    }
    return lists;
  }

  /// The same of all workers, one after the other; `T` is what it is converted to.
  template <class T, class Of>
  std::vector<T> all(Of of) const {
    std::vector<T> list;
    for (const WorkerShare& share : shares) {
      for (const SampleGroup& group : share.groups) {
        for (const Sample& sample : group.samples)
          list.push_back(static_cast<T>(std::invoke(of, sample)));
      }
    }
    return list;
  }

  /// The number of each sample's prompt: samples of the same one are compared.
  std::vector<std::int64_t> prompt_of_samples() const;

  template <class Function>
  void for_each(Function&& function) {
    for (WorkerShare& share : shares) {
      for (SampleGroup& group : share.groups) {
        for (Sample& sample : group.samples) function(sample);
      }
    }
  }

  /// Takes the batches that workers made of the samples, and the lengths of all samples in them.
  /// kInternal: another number of samples.
  runtime::Status take(const std::vector<Generated>& generated);

  /// Takes the scores of reports that were made where samples were generated, and keeps the
  /// reports. kInternal: another number of samples.
  runtime::Status take_scores(std::vector<RewardReport> reports);

  /// Leaves out the samples that `keep` refuses. Groups stay, empty ones as well. What workers have
  /// is not changed.
  template <class Keep>
  void keep_if(Keep&& keep) {
    for (WorkerShare& share : shares) {
      for (SampleGroup& group : share.groups)
        std::erase_if(group.samples, [&](const Sample& sample) { return !keep(sample); });
    }
  }

  /// Puts those groups of `fresh`, rows by worker, behind the own ones. They are numbered on, in
  /// the order of their numbers.
  void append(const StepBatch& fresh, const std::vector<std::vector<std::int64_t>>& rows);

  /// Cuts mini-batches of `mini_batch_prompts` prompts, whichever workers have them.
  void cut_mini_batches(std::int64_t mini_batch_prompts);

  /// Moves groups to other workers. What workers have is not changed.
  void place(const BalancedShards& balanced);
};

}  // namespace rl
