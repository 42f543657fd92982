#include "rl/worker/policy_worker.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "rl/algo/aggregate.h"
#include "rl/algo/masked.h"
#include "rl/algo/token_advantage.h"
#include "rl/model/save.h"
#include "rl/worker/reference_worker.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

at::Tensor copy_to_tensor(std::span<const float> values) {
  return at::from_blob(const_cast<float*>(values.data()), {static_cast<std::int64_t>(values.size())}, at::kFloat).clone();
}

// Autograd reports a failure (out of memory, above all) by throwing.
Status backward(const at::Tensor& loss) {
  try {
    loss.backward();
    return {};
  } catch (const std::exception& error) {
    return runtime::resource_exhausted("backward pass: " + std::string(error.what()));
  }
}

Status check_update(const RolloutBatch& batch, std::span<const float> reference_logprobs, const UpdatePlan& plan, bool needs_reference) {
  const Status valid = batch.validate();
  if (!valid.ok()) return valid;
  if (static_cast<std::int64_t>(plan.advantages.size()) != batch.samples()) return runtime::invalid_argument("update: one advantage a sample is needed");
  if (reference_logprobs.size() != (needs_reference ? batch.logprobs.size() : 0)) {
    return runtime::invalid_argument("update: " + std::to_string(reference_logprobs.size()) + " reference log-probs for " +
                                     std::to_string(batch.logprobs.size()) + " tokens");
  }
  for (const MiniBatch& mini_batch : plan.mini_batches) {
    if (mini_batch.first_sample < 0 || mini_batch.first_sample > mini_batch.last_sample || mini_batch.last_sample > batch.samples()) {
      return runtime::invalid_argument("update: a mini-batch outside the samples");
    }
  }
  return {};
}

}  // namespace

PolicyWorker::PolicyWorker(const PolicyOptions& options, std::unique_ptr<Transformer> model, std::unique_ptr<Communicator> communicator)
    : options_(options), learner_(std::move(model), std::move(communicator), options.learner) {}

Result<std::unique_ptr<PolicyWorker>> PolicyWorker::create(const PolicyOptions& options, std::unique_ptr<Communicator> communicator) {
  at::set_num_threads(options.threads);  // backward's matrix products
  Result<std::unique_ptr<Transformer>> model = Transformer::load(options.model, {.threads = options.threads});
  if (!model.ok()) return model.status();
  std::unique_ptr<PolicyWorker> worker(new PolicyWorker(options, std::move(*model), std::move(communicator)));
  const Transformer& transformer = worker->learner_.model();
  EngineOptions engine_options;
  engine_options.context_max = std::min(options.positions_max, transformer.config().max_position_embeddings);
  Result<std::unique_ptr<Engine>> engine = Engine::create(transformer, engine_options);
  if (!engine.ok()) return engine.status();
  worker->engine_ = std::move(*engine);
  return worker;
}

Result<RolloutBatch> PolicyWorker::generate(const PromptBatch& prompts, bool validation) {
  if (!prompts.ids.consistent() || static_cast<std::int64_t>(prompts.seeds.size()) != prompts.ids.rows()) {
    return runtime::invalid_argument("generate: a seed for each prompt is needed");
  }
  const SamplingOptions& how = validation ? options_.validation : options_.training;
  std::vector<Request> requests;
  for (std::int64_t i = 0; i < prompts.ids.rows(); ++i) {
    const auto ids = prompts.ids.row(i);
    requests.push_back({.prompt_ids = {ids.begin(), ids.end()},
                        .n = how.samples,
                        .sampling = {.temperature = how.temperature,
                                     .top_p = how.top_p,
                                     .top_k = how.top_k,
                                     .max_new_tokens = how.response_tokens_max,
                                     .seed = prompts.seeds[static_cast<std::size_t>(i)]}});
  }
  RolloutBatch batch;
  batch.prompts = prompts.ids;
  if (requests.empty()) return batch;
  const Result<std::vector<Completion>> completions = engine_->generate(requests);
  if (!completions.ok()) return completions.status();
  for (const Completion& completion : *completions) {
    if (completion.finish_reason == FinishReason::kError) return completion.status.with_context("generating for prompt " + std::to_string(completion.request));
    if (completion.ids.empty()) return runtime::internal_error("the engine gave an empty response");
    batch.prompt_of.push_back(static_cast<std::int32_t>(completion.request));
    batch.responses.append(completion.ids);
    batch.logprobs.insert(batch.logprobs.end(), completion.logprobs.begin(), completion.logprobs.end());
    batch.stopped.push_back(completion.finish_reason == FinishReason::kStop ? 1 : 0);
  }
  return batch;
}

Result<Metrics> PolicyWorker::update(const RolloutBatch& batch, std::span<const float> reference_logprobs, const UpdatePlan& plan) {
  const Status valid = check_update(batch, reference_logprobs, plan, options_.objective.use_kl_loss);
  if (!valid.ok()) return valid;
  const std::vector<std::int64_t> lengths = sample_lengths(batch);
  Metrics metrics;
  for (std::int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
    for (const MiniBatch& mini_batch : plan.mini_batches) {
      const auto mine = std::span(lengths).subspan(static_cast<std::size_t>(mini_batch.first_sample),
                                                   static_cast<std::size_t>(mini_batch.last_sample - mini_batch.first_sample));
      const std::vector<std::int64_t> cuts = plan_micro_batches(mine, options_.micro_batch);
      for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        const Status status = accumulate(batch, reference_logprobs, plan, mini_batch, mini_batch.first_sample + cuts[i],
                                         mini_batch.first_sample + cuts[i + 1], metrics);
        if (!status.ok()) return status;
      }
      const Result<OptimizerReport> report = learner_.apply(plan.learning_rate);
      if (!report.ok()) return report.status();
      const double part = 1.0 / learner_.communicator().size();
      metrics["actor/grad_norm"] += report->grad_norm * part;
      metrics["actor/skipped_updates"] += report->skipped ? part : 0.0;
    }
  }
  const double steps = static_cast<double>(options_.epochs) * static_cast<double>(plan.mini_batches.size());
  for (auto& [name, value] : metrics) {
    if (name != "actor/skipped_updates") value /= std::max(1.0, steps);
  }
  return metrics;
}

Status PolicyWorker::accumulate(const RolloutBatch& batch, std::span<const float> reference_logprobs, const UpdatePlan& plan,
                                const MiniBatch& mini_batch, std::int64_t first, std::int64_t last, Metrics& metrics) {
  const PolicyObjective& objective = options_.objective;
  const Result<TokenLogprobs> outputs = learner_.model().token_logprobs(
      pack_samples(batch, first, last), {.temperature = options_.training.temperature, .with_entropy = true});
  if (!outputs.ok()) return outputs.status();

  std::vector<std::int64_t> lengths;
  for (std::int64_t sample = first; sample < last; ++sample) lengths.push_back(batch.responses.row_size(sample));
  const auto begin = static_cast<std::size_t>(batch.responses.offsets[static_cast<std::size_t>(first)]);
  const auto count = static_cast<std::size_t>(batch.responses.offsets[static_cast<std::size_t>(last)]) - begin;
  const at::Tensor mask_BT = length_mask(lengths);
  const at::Tensor logprobs_BT = pad_rows(outputs->logprobs_N, lengths);
  const at::Tensor old_logprobs_BT = pad_rows(copy_to_tensor(std::span(batch.logprobs).subspan(begin, count)), lengths);
  const at::Tensor advantages_BT = per_token(
      copy_to_tensor(std::span(plan.advantages).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first))), mask_BT);

  const Aggregation aggregation{.mode = objective.aggregation,
                                .tokens = static_cast<double>(mini_batch.tokens_total),
                                .sequences = static_cast<double>(mini_batch.samples_total),
                                .horizon = static_cast<double>(options_.training.response_tokens_max)};
  const at::Tensor ratio_BT = importance_ratio(logprobs_BT, old_logprobs_BT);
  const PolicyLoss surrogate = clipped_surrogate(ratio_BT, advantages_BT, objective.clip);
  const at::Tensor policy_loss = aggregate(surrogate.loss_BT, mask_BT, aggregation);
  at::Tensor loss = policy_loss;
  const at::Tensor entropy_BT = pad_rows(outputs->entropy_N, lengths);
  if (objective.entropy_coefficient != 0.0) loss = loss - aggregate(entropy_BT, mask_BT, aggregation) * objective.entropy_coefficient;
  if (objective.use_kl_loss) {
    const at::Tensor reference_BT = pad_rows(copy_to_tensor(reference_logprobs.subspan(begin, count)), lengths);
    const at::Tensor kl_loss = aggregate(kl_penalty(logprobs_BT, reference_BT, objective.kl_penalty), mask_BT, aggregation);
    loss = loss + kl_loss * objective.kl_coefficient;
    metrics["actor/kl_loss"] += kl_loss.item<double>();
  }
  const Status status = backward(loss);
  if (!status.ok()) return status;

  // Means over the mini-batch's tokens, this worker's share of them.
  const double tokens = std::max(1.0, static_cast<double>(mini_batch.tokens_total));
  metrics["actor/pg_loss"] += policy_loss.item<double>();
  metrics["actor/entropy"] += masked_sum(entropy_BT.detach(), mask_BT).item<double>() / tokens;
  metrics["actor/ppo_kl"] -= masked_sum(log_ratio(logprobs_BT.detach(), old_logprobs_BT), mask_BT).item<double>() / tokens;
  metrics["actor/pg_clipfrac"] += masked_sum(surrogate.clipped_BT, mask_BT).item<double>() / tokens;
  metrics["actor/pg_clipfrac_lower"] += masked_sum(surrogate.clipped_lower_BT, mask_BT).item<double>() / tokens;
  return {};
}

Result<Metrics> PolicyWorker::supervise(const DemonstrationBatch& batch, std::int64_t tokens_total, double learning_rate) {
  const bool consistent = batch.prompts.consistent() && batch.responses.consistent() && batch.prompts.rows() == batch.responses.rows();
  if (!consistent || tokens_total < 1) return runtime::invalid_argument("supervise: sizes differ");
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < batch.prompts.rows(); ++i) lengths.push_back(batch.prompts.row_size(i) + batch.responses.row_size(i));
  const std::vector<std::int64_t> cuts = plan_micro_batches(lengths, options_.micro_batch);
  double loss_sum = 0.0;
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    PackedBatch packed;
    for (std::int64_t i = cuts[k]; i < cuts[k + 1]; ++i) {
      std::vector<std::int32_t> sequence(batch.prompts.row(i).begin(), batch.prompts.row(i).end());
      sequence.insert(sequence.end(), batch.responses.row(i).begin(), batch.responses.row(i).end());
      packed.append(sequence, batch.prompts.row_size(i));
    }
    const Result<TokenLogprobs> outputs = learner_.model().token_logprobs(packed);
    if (!outputs.ok()) return outputs.status();
    const at::Tensor loss = -outputs->logprobs_N.sum() / static_cast<double>(tokens_total);
    const Status status = backward(loss);
    if (!status.ok()) return status;
    loss_sum += loss.item<double>();
  }
  const Result<OptimizerReport> report = learner_.apply(learning_rate);
  if (!report.ok()) return report.status();
  return Metrics{{"sft/loss", loss_sum}, {"sft/grad_norm", report->grad_norm / learner_.communicator().size()}};
}

Result<std::vector<std::filesystem::path>> PolicyWorker::save(const std::filesystem::path& folder) {
  Result<std::vector<std::filesystem::path>> files = learner_.save(folder);
  if (!files.ok()) return files.status();
  const Status status = save_tokenizer(options_.model, folder / kModelFolder);
  if (!status.ok()) return status;
  return files;
}

Result<std::vector<float>> PolicyWorker::logprobs(const RolloutBatch& batch) {
  const Status valid = batch.validate();
  if (!valid.ok()) return valid;
  return response_logprobs(learner_.model(), batch, options_.training.temperature, options_.micro_batch);
}

}  // namespace rl
