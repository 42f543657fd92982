// Groups of workers in the test's process: they keep batches in a map, and do with them what actors
// do.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rl/batch/worker_lists.h"
#include "rl/run/rl/prompt_source.h"
#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/step_batch.h"
#include "rl/run/rl/warm_start.h"
#include "rl/worker/update_loop.h"
#include "runtime/call/object_state.h"

namespace rl {

template <class T>
class FakeObjects {
 public:
  runtime::ObjectRef<T> put(T value) {
    auto state = runtime::ObjectState::ready(nullptr, {});
    values_[state.get()] = std::move(value);
    return runtime::ObjectRef<T>(state);
  }
  // An object that is not there is an empty one.
  T get(const runtime::ObjectRef<T>& ref) const {
    const auto found = values_.find(ref.state().get());
    return found == values_.end() ? T() : found->second;
  }

 private:
  std::map<const runtime::ObjectState*, T> values_;
};

// Prompts 0 .. prompts - 1 of a step over the workers, in turns; the prompt is its own token.
inline StepPrompts fake_prompts(std::int64_t prompts, std::int64_t workers,
                                std::int64_t mini_batch = 1'000) {
  StepPrompts step{.shards = shard_prompts(prompts, std::min(prompts, mini_batch), workers),
                   .batches = {},
                   .tasks = {}};
  for (const PromptShard& shard : step.shards) {
    PromptBatch& batch = step.batches.emplace_back();
    std::vector<RewardTask>& tasks = step.tasks.emplace_back();
    for (const std::int64_t prompt : shard.prompts) {
      batch.ids.append(std::vector<std::int32_t>{static_cast<std::int32_t>(prompt)});
      batch.seeds.push_back(static_cast<std::uint64_t>(prompt));
      tasks.push_back({.data_source = "toy",
                       .ground_truth = std::to_string(prompt),
                       .where = "row " + std::to_string(prompt),
                       .extra_info = ""});
    }
  }
  for (std::int64_t row = 0; row < prompts; ++row) step.rows.push_back(100 + row);
  return step;
}

// Samples of each prompt; the k-th has as many tokens as prompt + k + 1.
inline RolloutBatch fake_samples(const PromptBatch& prompts, std::int64_t samples_per_prompt) {
  RolloutBatch batch;
  batch.prompts = prompts.ids;
  for (std::int64_t row = 0; row < prompts.ids.rows(); ++row) {
    for (std::int64_t k = 0; k < samples_per_prompt; ++k) {
      const auto length = static_cast<std::size_t>(prompts.ids.row(row)[0] + k + 1);
      batch.prompt_of.push_back(static_cast<std::int32_t>(row));
      batch.responses.append(std::vector<std::int32_t>(length, static_cast<std::int32_t>(k)));
      batch.logprobs.insert(batch.logprobs.end(), length, -1.0F);
      batch.stopped.push_back(1);
    }
  }
  return batch;
}

class FakeBatches : public BatchCalls {
 public:
  runtime::Result<std::vector<Generated>> gather(
      const BatchRefs& kept, const BatchRefs& fresh,
      const std::vector<std::vector<std::int64_t>>& rows) override {
    std::vector<Generated> all;
    for (std::size_t worker = 0; worker < rows.size(); ++worker) {
      if (lost.contains(fresh[worker].state().get())) return runtime::unavailable("a node is gone");
      const auto batch =
          append_prompts(objects.get(kept[worker]), objects.get(fresh[worker]), rows[worker]);
      if (!batch.ok()) return batch.status();
      all.push_back(made(*batch));
    }
    return all;
  }
  runtime::Result<std::vector<Generated>> collect(const BatchRefs& batches,
                                                  const PromptPlaces& places) override {
    std::vector<RolloutBatch> values;
    for (const auto& ref : batches) values.push_back(objects.get(ref));
    std::vector<Generated> all;
    for (const std::vector<PromptPlace>& of_worker : places) {
      const auto batch = collect_prompts(values, of_worker);
      if (!batch.ok()) return batch.status();
      all.push_back(made(*batch));
    }
    return all;
  }
  runtime::Result<std::vector<Generated>> leave_out(const BatchRefs& batches,
                                                    const SampleMarks& marks) override {
    std::vector<Generated> all;
    for (std::size_t worker = 0; worker < batches.size(); ++worker) {
      const auto batch = without_samples(objects.get(batches[worker]), marks[worker]);
      if (!batch.ok()) return batch.status();
      all.push_back(made(*batch));
    }
    return all;
  }
  runtime::Result<runtime::ObjectRef<RolloutBatch>> put(const RolloutBatch& batch) override {
    return objects.put(batch);
  }
  runtime::Result<RolloutBatch> get(const runtime::ObjectRef<RolloutBatch>& batch) const override {
    if (lost.contains(batch.state().get())) return runtime::not_found("lost");
    return objects.get(batch);
  }

  Generated made(const RolloutBatch& batch) {
    return {.batch = objects.put(batch), .summary = summarize(batch)};
  }

  // The first token of each sample's prompt, in the order of the batch.
  std::vector<std::int32_t> prompts_of(const runtime::ObjectRef<RolloutBatch>& ref) const {
    const RolloutBatch batch = objects.get(ref);
    std::vector<std::int32_t> prompts;
    for (const std::int32_t row : batch.prompt_of) prompts.push_back(batch.prompts.row(row)[0]);
    return prompts;
  }

  FakeObjects<RolloutBatch> objects;
  std::set<const runtime::ObjectState*> lost;
};

class FakeGenerate : public GenerateCalls {
 public:
  FakeGenerate(FakeBatches& batches, std::size_t workers, std::int64_t samples_per_prompt)
      : batches_(batches), workers_(workers), samples_per_prompt_(samples_per_prompt) {}

  std::size_t workers() const override { return workers_; }
  void score_early() override { scores_early = true; }
  runtime::Result<std::vector<Generated>> generate(const StepPrompts& prompts,
                                                   bool validation) override {
    return made(prompts.batches, samples_per_prompt_);
  }
  runtime::Result<std::vector<Generated>> generate_greedy(
      const std::vector<PromptBatch>& prompts) override {
    return made(prompts, 1);
  }

  bool scores_early = false;

 private:
  std::vector<Generated> made(const std::vector<PromptBatch>& prompts, std::int64_t samples) {
    std::vector<Generated> all;
    for (const PromptBatch& batch : prompts)
      all.push_back(batches_.made(fake_samples(batch, samples)));
    return all;
  }

  FakeBatches& batches_;
  std::size_t workers_;
  std::int64_t samples_per_prompt_;
};

// By default a sample scores its place among those of its prompt; NaN: it has no score.
class FakeScore : public ScoreCalls {
 public:
  using Of = std::function<double(std::int64_t prompt, std::int64_t sample)>;

  explicit FakeScore(FakeBatches& batches) : batches_(batches) {}

  Reports score(const BatchRefs& batches,
                const std::vector<std::vector<RewardTask>>& tasks) override {
    std::vector<RewardReport> reports;
    for (const auto& ref : batches) {
      RewardReport& report = reports.emplace_back();
      std::map<std::int32_t, std::int64_t> seen;
      for (const std::int32_t prompt : batches_.prompts_of(ref)) {
        const double value = of(prompt, seen[prompt]++);
        report.left_out.push_back(std::isnan(value) ? 1 : 0);
        report.scores.push_back(std::isnan(value) ? 0.0 : value);
        for (const std::string& name : extra) report.extra[name].push_back(value + 10.0);
      }
      report.counts["reward/scored"] = 1.0;
    }
    return reports;
  }
  std::function<Reports()> begin_score(const BatchRefs& batches,
                                       const std::vector<std::vector<RewardTask>>& tasks) override {
    return [this, batches, tasks] { return score(batches, tasks); };
  }
  runtime::Result<std::vector<std::vector<SampleText>>> texts(
      const BatchRefs& batches, const std::vector<std::vector<RewardTask>>& tasks,
      const std::vector<std::vector<double>>& scores, std::int64_t count) override {
    std::vector<std::vector<SampleText>> all;
    for (const std::vector<double>& of_worker : scores) {
      std::vector<SampleText>& texts = all.emplace_back();
      for (const double score : of_worker) {
        if (static_cast<std::int64_t>(texts.size()) < count)
          texts.push_back({.prompt = "p", .response = "r", .ground_truth = "g", .score = score});
      }
    }
    return all;
  }

  Of of = [](std::int64_t, std::int64_t sample) { return static_cast<double>(sample); };
  std::vector<std::string> extra;  // names of further numbers, which are 10 above the score

 private:
  FakeBatches& batches_;
};

// Says of each sample how many tokens its response has.
class FakeReference : public ReferenceCalls {
 public:
  explicit FakeReference(FakeBatches& batches) : batches_(batches) {}

  std::vector<PassLimits> limits() const override {
    return {workers, {.scoring = {.samples_max = 3}}};
  }
  runtime::Result<std::vector<Referenced>> score(const BatchRefs& batches,
                                                 const ScoringPasses& given) override {
    passes = given;
    std::vector<Referenced> said;
    for (const auto& ref : batches) {
      Referenced& of_worker = said.emplace_back();
      for (const std::int64_t tokens : summarize(batches_.objects.get(ref)).response_tokens)
        of_worker.kl_penalties.push_back(static_cast<double>(tokens));
    }
    return said;
  }
  runtime::Result<std::vector<Referenced>> score_some(const BatchRefs& batches,
                                                      const SampleMarks& marks,
                                                      const std::vector<Referenced>& so_far,
                                                      const ScoringPasses& given) override {
    std::vector<Referenced> said = *score(batches, given);
    for (std::size_t worker = 0; worker < said.size(); ++worker) {
      for (std::size_t i = 0; i < marks[worker].size(); ++i) {
        if (marks[worker][i] == 0) continue;
        const std::vector<double>& before = so_far[worker].kl_penalties;
        said[worker].kl_penalties[i] = before.empty() ? -1.0 : before[i];
      }
    }
    return said;
  }
  runtime::Result<std::vector<Referenced>> leave_out(const BatchRefs& batches,
                                                     const std::vector<Referenced>& said,
                                                     const SampleMarks& marks) override {
    std::vector<Referenced> kept(said.size());
    for (std::size_t worker = 0; worker < said.size(); ++worker) {
      for (std::size_t i = 0; i < marks[worker].size(); ++i) {
        if (marks[worker][i] == 0)
          kept[worker].kl_penalties.push_back(said[worker].kl_penalties[i]);
      }
    }
    return kept;
  }

  std::size_t workers = 2;
  ScoringPasses passes;  // of the last call

 private:
  FakeBatches& batches_;
};

// Notes what the roles are to learn from, and learns nothing.
class FakeUpdate : public UpdateCalls {
 public:
  explicit FakeUpdate(std::size_t workers = 2) : workers_(workers) {}

  std::size_t workers() const override { return workers_; }
  bool has_critic() const override { return critic; }
  std::vector<PassLimits> policy_limits() const override {
    return {workers_, {.learning = {.samples_max = 3}, .scoring = {.samples_max = 1}}};
  }
  std::vector<PassLimits> critic_limits() const override {
    return {workers_, {.learning = {.samples_max = 2}}};
  }
  runtime::Result<Metrics> update_critic(const BatchRefs&, const EstimateRefs& given_estimates,
                                         const std::vector<UpdatePlan>& given) override {
    calls.push_back("critic");
    critic_plans = given;
    estimates = given_estimates;
    if (!critic_failure.ok()) return critic_failure;
    return Metrics{{"critic/loss", 0.25}};
  }
  runtime::Result<Metrics> update_policy(const BatchRefs&, const LogprobRefs& reference,
                                         const std::vector<UpdatePlan>& given,
                                         const EstimateRefs& given_estimates,
                                         const LogprobRefs& teachers) override {
    calls.push_back("policy");
    plans = given;
    references = reference;
    taught = teachers;
    estimates = given_estimates;
    if (!policy_failure.ok()) return policy_failure;
    return Metrics{{"actor/loss", 0.5}};
  }

  bool critic = false;  // it has its own model
  runtime::Status critic_failure;
  runtime::Status policy_failure;
  std::vector<std::string> calls;  // "critic", "policy"
  std::vector<UpdatePlan> plans;   // those of the last calls
  std::vector<UpdatePlan> critic_plans;
  LogprobRefs references;
  LogprobRefs taught;
  EstimateRefs estimates;

 private:
  std::size_t workers_;
};

// Advantages of 1 and 3 on each worker.
class FakeEstimate : public EstimateCalls {
 public:
  std::vector<PassLimits> limits() const override { return {1, {.scoring = {.samples_max = 3}}}; }
  runtime::Result<std::vector<Estimated>> estimate(
      const BatchRefs& batches, const LogprobRefs& reference_logprobs,
      const std::vector<EstimateTask>& asked_tasks) override {
    tasks = asked_tasks;
    std::vector<Estimated> all(batches.size());
    for (Estimated& part : all) {
      for (const double advantage : {1.0, 3.0}) part.summary.advantages.add(advantage);
    }
    return all;
  }
  runtime::Result<std::vector<TokenEstimates>> get(const EstimateRefs& estimates) const override {
    return std::vector<TokenEstimates>(estimates.size());
  }

  std::vector<EstimateTask> tasks;
};

class RefusesPartly : public PartialCalls {
 public:
  std::size_t workers() const override { return 2; }
  runtime::Result<std::vector<PartlyGenerated>> generate_partially(
      const std::vector<PartialRef>&, const std::vector<std::vector<PromptBatch>>&,
      const std::vector<PartialPlan>&, std::uint64_t) override {
    return runtime::unavailable("asked for parts");
  }
  runtime::Result<PartialRef> put(const std::vector<PartialPrompt>&) override {
    return runtime::unavailable("asked for parts");
  }
  runtime::Result<std::vector<PartialPrompt>> get(const PartialRef&) const override {
    return runtime::unavailable("asked for parts");
  }
};

class RefusesAhead : public AheadCalls {
 public:
  std::size_t workers() const override { return 2; }
  runtime::Status publish(const std::string& name, std::uint64_t) override {
    return runtime::unavailable("asked ahead for " + name);
  }
  std::vector<runtime::ObjectRef<Generated>> begin(const std::vector<PromptBatch>&,
                                                   const std::string&, std::uint64_t) override {
    return {};
  }
  runtime::Result<std::vector<Generated>> finish(
      const std::vector<runtime::ObjectRef<Generated>>&) const override {
    return runtime::unavailable("asked ahead");
  }
};

// A policy that a warm start asks, on two workers.
class FakeWarmStart : public WarmStartCalls {
 public:
  std::vector<MicroBatchLimits> limits() const override { return {2, {.samples_max = 1}}; }
  runtime::Result<Metrics> supervise(const std::vector<DemonstrationBatch>& batches,
                                     const std::vector<SupervisedPlan>& plans) override {
    EXPECT_EQ(plans.size(), batches.size());
    ++steps;
    tokens_seen += plans.front().tokens_total;
    return Metrics{{"sft/loss", 1.0}};
  }
  runtime::Status reset_optimizer() override {
    ++resets;
    return {};
  }
  runtime::Status save_reference() override {
    ++saves;
    return {};
  }

  std::int64_t tokens_seen = 0;
  int steps = 0, resets = 0, saves = 0;
};

// Numbered by step and round; their position is how many were asked for.
class FakePrompts : public PromptSource {
 public:
  FakePrompts(std::int64_t prompts, std::int64_t workers)
      : prompts_count_(prompts), workers_(workers) {}

  runtime::Result<StepPrompts> next(std::int64_t step, std::int64_t round) override {
    asked.emplace_back(step, round);
    return fake_prompts(prompts_count_, workers_);
  }
  nlohmann::json position() const override { return asked.size(); }

  std::vector<std::pair<std::int64_t, std::int64_t>> asked;

 private:
  std::int64_t prompts_count_;
  std::int64_t workers_;
};

// A batch as it is before it is scored.
inline StepBatch fake_batch(FakeBatches& batches, std::int64_t prompts, std::int64_t workers,
                            std::int64_t samples_per_prompt) {
  FakeGenerate generate(batches, static_cast<std::size_t>(workers), samples_per_prompt);
  StepPrompts step = fake_prompts(prompts, workers);
  const auto generated = generate.generate(step, false);
  return *StepBatch::of(std::move(step), *generated, samples_per_prompt);
}

}  // namespace rl
