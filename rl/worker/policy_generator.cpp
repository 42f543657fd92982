#include "rl/worker/policy_generator.h"

#include <optional>
#include <string>
#include <utility>

#include "rl/agent/agent_loop.h"
#include "rl/agent/custom_loops.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// Without its prompt.
Request request_like(const SamplingOptions& how) {
  return {.prompt_ids = {},
          .n = how.samples,
          .sampling = {.temperature = how.temperature,
                       .top_p = how.top_p,
                       .top_k = how.top_k,
                       .first_temperature = how.first_temperature,
                       .first_top_k = how.first_top_k,
                       .repetition_penalty = how.repetition_penalty,
                       .max_new_tokens = how.response_tokens_max,
                       .min_new_tokens = how.response_tokens_min,
                       .ignore_eos = how.ignore_eos}};
}

// Samples of prompts that are in the batch already, in their order.
Status append_samples(RolloutBatch& batch, std::int32_t prompt,
                      std::span<const Completion> completions) {
  for (const Completion& completion : completions) {
    if (completion.ids.empty()) return runtime::internal_error("the engine gave an empty response");
    batch.prompt_of.push_back(prompt);
    batch.responses.append(completion.ids);
    batch.logprobs.insert(batch.logprobs.end(), completion.logprobs.begin(),
                          completion.logprobs.end());
    batch.lengths_max.push_back(completion.length_max);
    batch.stopped.push_back(completion.finish_reason == FinishReason::kStop ? 1 : 0);
  }
  return {};
}

// Gathers the tokens of a generate() as they come, and tells of responses that have come to their
// end.
class FinishedResponses {
 public:
  FinishedResponses(const Engine& engine, std::size_t prompts, std::size_t samples,
                    const PolicyGenerator::OnFinished& tell)
      : engine_(engine), samples_(samples), tell_(tell), begun_(prompts * samples) {}

  void look(RequestId first) {
    std::vector<std::int32_t> prompt_of;
    Ragged<std::int32_t> responses;
    for (const NewToken& token : engine_.new_tokens()) {
      const std::size_t prompt = token.request - first;
      std::vector<std::int32_t>& ids =
          begun_.at(prompt * samples_ + static_cast<std::size_t>(token.sample));
      ids.push_back(token.id);
      if (!token.last) continue;
      prompt_of.push_back(static_cast<std::int32_t>(prompt));
      responses.append(ids);
    }
    if (!prompt_of.empty()) tell_(prompt_of, responses);
  }

 private:
  const Engine& engine_;
  std::size_t samples_;
  const PolicyGenerator::OnFinished& tell_;
  std::vector<std::vector<std::int32_t>> begun_;
};

}  // namespace

Result<RolloutBatch> PolicyGenerator::generate(const PromptBatch& prompts, bool validation,
                                               const OnFinished& on_finished) {
  return generate_with(prompts, validation ? options_.validation : options_.training, on_finished);
}

Result<RolloutBatch> PolicyGenerator::generate_greedy(const PromptBatch& prompts) {
  SamplingOptions greedy = options_.training;
  greedy.samples = 1;
  greedy.temperature = 0.0F;
  greedy.top_p = 1.0F;
  greedy.top_k = -1;
  greedy.first_temperature = 0.0F;
  return generate_with(prompts, greedy);
}

Result<RolloutBatch> PolicyGenerator::generate_with(const PromptBatch& prompts,
                                                    const SamplingOptions& how,
                                                    const OnFinished& on_finished) {
  if (!prompts.ids.consistent() ||
      static_cast<std::int64_t>(prompts.seeds.size()) != prompts.ids.rows()) {
    return runtime::invalid_argument("generate: a seed for each prompt is needed");
  }
  const Request like = request_like(how);
  if (agent_) return converse(prompts, like);
  std::vector<Request> requests;
  for (std::int64_t i = 0; i < prompts.ids.rows(); ++i) {
    const auto ids = prompts.ids.row(i);
    Request& request = requests.emplace_back(like);
    request.prompt_ids.assign(ids.begin(), ids.end());
    request.sampling.seed = prompts.seeds[static_cast<std::size_t>(i)];
  }
  RolloutBatch batch;
  batch.prompts = prompts.ids;
  const auto here =
      weights_.bring();  // also where there is nothing to generate: others may need it
  if (!here.ok()) return here.status();
  if (requests.empty()) return batch;
  Engine::OnStep on_step;
  std::optional<FinishedResponses> finished;
  if (on_finished) {
    finished.emplace(*engine_, requests.size(), static_cast<std::size_t>(how.samples), on_finished);
    on_step = [&](const EngineProgress& progress) {
      finished->look(progress.first);
      return true;
    };
  }
  const Result<std::vector<Completion>> completions = engine_->generate(requests, on_step);
  if (!completions.ok()) return completions.status();
  for (const Completion& completion : *completions) {
    if (completion.finish_reason == FinishReason::kError)
      return completion.status.with_context("generating for prompt " +
                                            std::to_string(completion.request));
    const Status appended = append_samples(batch, static_cast<std::int32_t>(completion.request),
                                           std::span(&completion, 1));
    if (!appended.ok()) return appended;
  }
  return batch;
}

Result<PartialBatch> PolicyGenerator::generate_partially(const PartialPrompts& prompts,
                                                         const PartialPlan& plan,
                                                         std::uint64_t version) {
  std::vector<PartialPrompt> all = prompts.partial;
  for (const PromptBatch& fresh : prompts.fresh) {
    if (!fresh.ids.consistent() ||
        static_cast<std::int64_t>(fresh.seeds.size()) != fresh.ids.rows())
      return runtime::invalid_argument("generate_partially: a seed for each prompt is needed");
    for (std::int64_t i = 0; i < fresh.ids.rows(); ++i) {
      const auto ids = fresh.ids.row(i);
      all.push_back(
          {.ids = {ids.begin(), ids.end()}, .seed = fresh.seeds[static_cast<std::size_t>(i)]});
    }
  }
  const auto here = weights_.bring();
  if (!here.ok()) return here.status();
  engine_->weights_changed(version);
  Result<PartialGeneration> generated =
      rl::generate_partially(*engine_, request_like(options_.training), all, plan);
  if (!generated.ok()) return generated.status();
  PartialBatch partial{.batch = {},
                       .finished = std::move(generated->finished),
                       .oldest = {},
                       .newest = {},
                       .rest = std::move(generated->rest)};
  for (std::size_t i = 0; i < partial.finished.size(); ++i) {
    partial.batch.prompts.append(all[static_cast<std::size_t>(partial.finished[i])].ids);
    const Status appended =
        append_samples(partial.batch, static_cast<std::int32_t>(i), generated->completions[i]);
    if (!appended.ok()) return appended;
    for (const Completion& completion : generated->completions[i]) {
      partial.oldest.push_back(
          static_cast<std::int64_t>(completion.weight_versions.front().version));
      partial.newest.push_back(
          static_cast<std::int64_t>(completion.weight_versions.back().version));
    }
  }
  return partial;
}

// Between two calls the weights change, and with them what the engine's cache is worth.
Result<RolloutBatch> PolicyGenerator::converse(const PromptBatch& prompts, const Request& like) {
  const auto here = weights_.bring();
  if (!here.ok()) return here.status();
  engine_->weights_changed(engine_->weight_version() + 1);
  EngineTurns turns(*engine_);
  Result<RolloutBatch> batch = agent_->run(turns, prompts, like);
  engine_->weights_changed(engine_->weight_version());  // its memory is the update's now
  return batch;
}

Result<std::unique_ptr<Conversations>> make_conversations(const PolicyOptions& options,
                                                          Result<Tokenizer> tokenizer) {
  if (!options.agent) return std::unique_ptr<Conversations>();
  if (!tokenizer.ok()) return tokenizer.status();
  Result<TurnText> text =
      TurnText::create(std::move(*tokenizer), options.chat_template, options.template_variables);
  if (!text.ok()) return text.status();
  if (options.agent->custom()) {
    Result<std::unique_ptr<CustomLoops>> loops = CustomLoops::create(*options.agent, *text);
    if (!loops.ok()) return loops.status();
    return std::unique_ptr<Conversations>(std::move(*loops));
  }
  Result<std::unique_ptr<AgentLoop>> agent = AgentLoop::create(*options.agent, std::move(*text));
  if (!agent.ok()) return agent.status();
  return std::unique_ptr<Conversations>(std::move(*agent));
}

}  // namespace rl
