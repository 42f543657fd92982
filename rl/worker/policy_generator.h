// The policy's generating half: samples of prompts by an engine, in one turn or several.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rl/agent/turn_source.h"
#include "rl/batch/rollout_batch.h"
#include "rl/metrics/metrics.h"
#include "rl/rollout/engine.h"
#include "rl/rollout/partial_rollout.h"
#include "rl/tokenizer/tokenizer.h"
#include "rl/worker/policy_options.h"
#include "rl/worker/weight_mover.h"
#include "runtime/core/result.h"

namespace rl {

/// Prompts for partial rollouts: the partial ones, oldest first, and new ones.
struct PartialPrompts {
  std::vector<PartialPrompt> partial;
  std::vector<PromptBatch> fresh;
};

/// What became of them.
struct PartialBatch {
  RolloutBatch batch;                  // of the prompts that are finished
  std::vector<std::int64_t> finished;  // which they are: indices into all prompts, ascending
  std::vector<std::int64_t>
      oldest;  // per sample: the first and the last version of the weights that made it
  std::vector<std::int64_t> newest;
  std::vector<PartialPrompt> rest;
};

/// How a policy generates.
struct GeneratorOptions {
  SamplingOptions training;
  SamplingOptions validation;
};

/// A resource; one thread at a time. Borrows the mover.
class PolicyGenerator {
 public:
  /// `agent` has several turns; null: each sample is one.
  PolicyGenerator(const GeneratorOptions& options, std::unique_ptr<Engine> engine,
                  std::unique_ptr<Conversations> agent, WeightMover& weights)
      : options_(options),
        engine_(std::move(engine)),
        agent_(std::move(agent)),
        weights_(weights) {}

  /// Samples for each prompt, by options.training or options.validation. Samples depend on weights,
  /// prompt and seed alone. kInvalidArgument: a prompt that leaves no room for a response, an id
  /// outside the vocabulary. `on_finished` hears of responses, each with the row of its prompt, as
  /// soon as they are there; not with several turns.
  using OnFinished = std::function<void(std::span<const std::int32_t> prompt_of,
                                        const Ragged<std::int32_t>& responses)>;
  runtime::Result<RolloutBatch> generate(const PromptBatch& prompts, bool validation,
                                         const OnFinished& on_finished = nullptr);

  /// One greedy response to each prompt: what ReMax compares the samples with. Errors: as
  /// generate().
  runtime::Result<RolloutBatch> generate_greedy(const PromptBatch& prompts);

  /// Of those prompts as many as the plan says, with the weights of now, which are that version;
  /// see generate_partially(). Errors: its.
  runtime::Result<PartialBatch> generate_partially(const PartialPrompts& prompts,
                                                   const PartialPlan& plan, std::uint64_t version);

  /// Of the samples generated since the last call: what became of calls of tools. Empty without
  /// several turns.
  Metrics take_generation_metrics() { return agent_ ? agent_->take_metrics() : Metrics(); }

  /// The weights became that version, between two calls.
  void weights_changed(std::uint64_t version) { engine_->weights_changed(version); }

  const Engine& engine() const { return *engine_; }

 private:
  runtime::Result<RolloutBatch> generate_with(const PromptBatch& prompts,
                                              const SamplingOptions& how,
                                              const OnFinished& on_finished = nullptr);
  runtime::Result<RolloutBatch> converse(const PromptBatch& prompts, const Request& like);

  GeneratorOptions options_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Conversations> agent_;
  WeightMover& weights_;
};

/// What leads a policy's conversations of several turns, by the model's tokenizer; null where each
/// sample is one turn. Errors: those of AgentLoop and CustomLoops, and of the tokenizer.
runtime::Result<std::unique_ptr<Conversations>> make_conversations(
    const PolicyOptions& options, runtime::Result<Tokenizer> tokenizer);

}  // namespace rl
