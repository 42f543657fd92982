// CustomLoops: samples that custom agent loops make, out of turns that the engine generates.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rl/agent/loop_host.h"
#include "rl/agent/turn_source.h"
#include "rl/agent/turn_text.h"
#include "runtime/core/result.h"

namespace rl {

/// A turn that was generated for a loop.
struct GeneratedTurn {
  std::vector<std::int32_t> prompt_ids;
  std::vector<std::int32_t> ids;
  std::vector<float> logprobs;  // of `ids`
  bool stopped = false;         // by itself, rather than for its length
  std::int64_t length_max = 0;
};

/// What of a LoopOutcome becomes a sample.
struct LoopSample {
  std::vector<std::int32_t> ids;  // the response
  std::vector<std::uint8_t> mask;
  std::vector<float> logprobs;  // of the tokens with a 1
  bool stopped = false;
  std::int64_t length_max = 0;
};

/// Cuts the response to `tokens_max` and finds each of the model's tokens among the turns: where it
/// stands, behind its own context. kInvalidArgument: one that was not generated there, none of
/// the model's at all.
runtime::Result<LoopSample> sample_of(const LoopOutcome& outcome,
                                      std::span<const GeneratedTurn> turns,
                                      std::int64_t tokens_max);

/// `like` as the sampling_params that verl's loops get, and what such parameters ask for.
/// kInvalidArgument: a parameter that is not known or out of range, or another temperature than
/// that of `like`. The log-probabilities of samples are those at that temperature.
nlohmann::ordered_json loop_sampling(const SamplingParams& like);
runtime::Result<SamplingParams> asked_sampling(const SamplingParams& like,
                                               const nlohmann::ordered_json& params);

/// A resource; one thread at a time. Loops do not wait for each other. Which turns a loop gets
/// depends on its prompt, its seed and its class alone.
///
/// A loop that fails leaves a sample behind that has no score: its note "agent_failure" says why,
/// and RewardWorker leaves it out and counts it. A class that scores by itself has its score in the
/// note "agent_score".
class CustomLoops : public Conversations {
 public:
  /// Errors: those of LoopHost::create.
  static runtime::Result<std::unique_ptr<CustomLoops>> create(const AgentOptions& options,
                                                              const TurnText& text);

  /// kInvalidArgument: a row that asks for a loop that there is not.
  runtime::Result<RolloutBatch> run(TurnSource& source, const PromptBatch& prompts,
                                    const Request& like) override;

  /// agent_loop/....
  std::map<std::string, double> take_metrics() override { return host_->take_metrics(); }

 private:
  struct Loop;
  struct Run;

  CustomLoops(const AgentOptions& options, std::unique_ptr<LoopHost> host)
      : default_loop_(options.default_loop), host_(std::move(host)) {}
  runtime::Result<std::vector<LoopTask>> tasks(const PromptBatch& prompts,
                                               const Request& like) const;
  runtime::Result<Request> request(const LoopCall& call, const PromptBatch& prompts,
                                   const Request& like) const;
  void take_turn(Run& run, Completion completion);
  void submit(Run& run, LoopCall call);
  static RolloutBatch batch_of(Run& run);
  /// The sample of a loop that has ended, or one of the token `stand_in` where it failed. `shared`
  /// are the ids of the prompt that all samples of a row have.
  static LoopSample settle(Loop& loop, const Request& like, std::int32_t stand_in,
                           std::vector<std::int32_t>& shared);

  std::string default_loop_;
  std::unique_ptr<LoopHost> host_;
};

}  // namespace rl
