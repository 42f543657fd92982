// Asynchronous training: workers of their own draw the samples of the next steps while this one is
// trained (ADR 35).
#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "rl/train/sample_store.h"
#include "rl/train/worker_lists.h"
#include "rl/trainer.h"
#include "runtime/core/log.h"
#include "runtime/core/rest_of.h"

namespace rl {

namespace {

using runtime::ObjectRef;
using runtime::Result;
using runtime::split;
using runtime::Status;

Status other_samples(const std::filesystem::path& file, std::int64_t step) {
  return runtime::invalid_argument(
      file.string() + ": has other samples than step " + std::to_string(step) +
      " needs: data.train_batch_size and rollout.n must stay as they were");
}

}  // namespace

Status Trainer::start_rollouts() {
  SlotOptions options{.nodes = options_.rollout_workers->nodes,
                      .per_node = options_.rollout_workers->per_node,
                      .cpus_per_worker = policy_slots_.cpus_per_worker,
                      .device = policy_slots_.device,
                      .beside_nodes = policy_slots_.nodes,
                      .beside_per_node = policy_slots_.per_node,
                      .nodes_key = "rollout.nnodes"};
  const Result<WorkerSlots> slots = reserve_slots(runtime_, options);
  if (!slots.ok()) return slots.status().with_context("workers that draw samples");
  WorkerSpec rollout_spec = policy_spec();
  rollout_spec.group = "rollout-" + slots->group.hex();
  rollout_spec.generates_only = true;
  auto rollouts =
      WorkerGroup<PolicyActor>::spawn(runtime_, *slots, /*reserves=*/true, rollout_spec);
  if (!rollouts.ok()) return rollouts.status();
  rollouts_ = std::move(*rollouts);
  LOG(info, "rollouts: {} worker(s) on {} node(s), {} thread(s) each; samples are {} old",
      slots->size(), slots->nodes, slots->threads(),
      options_.rollout_workers->steps_ahead == 1
          ? "one step"
          : std::to_string(options_.rollout_workers->steps_ahead) + " steps");
  return {};
}

// By the weights of now. Which worker draws what changes no sample. A version's name is used again
// once all that was asked of it has arrived: readers find the very version that they were told of,
// though newer ones have been published.
Status Trainer::begin_ahead(std::int64_t step) {
  Ahead ahead{.step = step,
              .weights = steps_done_,
              .position = feed_->position(),
              .prompts = {},
              .generated = {},
              .restored = {}};
  Result<StepPrompts> prompts = feed_->next(step);
  if (!prompts.ok()) return prompts.status();
  ahead.prompts = std::move(*prompts);
  const bool changed = published_.version == 0 || published_.step != steps_done_;
  const std::uint64_t version = published_.version + (changed ? 1 : 0);
  const std::string name =
      "weights-" + slots_.group.hex() + "-" +
      std::to_string(version % static_cast<std::uint64_t>(options_.rollout_workers->steps_ahead));
  if (changed) {
    const Status published =
        runtime_.get(policy_.leader().call(&PolicyActor::publish_weights, name, version));
    if (!published.ok()) return published;
    published_ = {.version = version, .step = steps_done_};
  }
  for (std::size_t worker = 0; worker < policy_.size(); ++worker) {
    const auto& rollout = rollouts_.member(worker % rollouts_.size());
    ahead.generated.push_back(
        rollout.call(&PolicyActor::generate_with, ahead.prompts.batches[worker], name, version));
  }
  ahead_.push_back(std::move(ahead));
  return {};
}

Status Trainer::fill_ahead(std::int64_t first) {
  const auto wanted = static_cast<std::size_t>(options_.rollout_workers->steps_ahead);
  while (ahead_.size() < wanted) {
    const std::int64_t next = first + static_cast<std::int64_t>(ahead_.size());
    if (next > total_steps_) break;
    if (const Status begun = begin_ahead(next); !begun.ok()) return begun;
  }
  return {};
}

Result<Trainer::Drawn> Trainer::draw_ahead(StepTimer& timer) {
  const std::int64_t step = steps_done_ + 1;
  if (const Status filled = fill_ahead(step); !filled.ok())
    return filled;  // of the first step; later ones find what the step before has asked for
  Ahead now = std::move(ahead_.front());
  ahead_.pop_front();
  Drawn drawn{std::move(now.prompts), std::move(now.restored), steps_done_ - now.weights};
  if (drawn.generated.empty()) {
    auto generated = runtime_.objects().gather(now.generated);
    if (!generated.ok()) return generated.status().with_context("the workers that draw samples");
    drawn.generated = std::move(*generated);
  }
  timer.lap("gen");
  if (step < total_steps_) {
    if (const Status filled = fill_ahead(step + 1); !filled.ok()) return filled;
    timer.lap("sync_rollout_weights");  // verl's name for it
  }
  return drawn;
}

// The samples in the order of the steps and of their prompts, whichever workers have them: another
// number of workers can go on with them. Called by the thread that writes.
Result<std::string> Trainer::encode_ahead(runtime::Runtime& runtime,
                                          const std::deque<Ahead>& ahead) {
  std::vector<SavedGroup> saved;
  for (const Ahead& step : ahead) {
    Result<std::vector<SavedGroup>> of_step = fetch_ahead(runtime, step);
    if (!of_step.ok()) return of_step.status();
    std::move(of_step->begin(), of_step->end(), std::back_inserter(saved));
  }
  return encode_groups(saved);
}

Result<std::vector<SavedGroup>> Trainer::fetch_ahead(runtime::Runtime& runtime,
                                                     const Ahead& ahead) {
  std::vector<Generated> generated = ahead.restored;
  if (generated.empty()) {
    auto gathered = runtime.objects().gather(ahead.generated);
    if (!gathered.ok()) return gathered.status();
    generated = std::move(*gathered);
  }
  std::size_t prompts = 0;
  for (const PromptShard& shard : ahead.prompts.shards) prompts += shard.prompts.size();
  std::vector<SavedGroup> saved(prompts);
  for (std::size_t worker = 0; worker < generated.size(); ++worker) {
    const Result<RolloutBatch> batch = runtime.get(generated[worker].batch);
    if (!batch.ok()) return batch.status();
    const std::vector<std::int64_t>& numbers = ahead.prompts.shards[worker].prompts;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::int64_t row[] = {static_cast<std::int64_t>(i)};
      Result<RolloutBatch> alone = append_prompts({}, *batch, row);
      if (!alone.ok()) return alone.status();
      const auto samples = static_cast<std::size_t>(alone->samples());
      // They have no scores yet.
      saved[static_cast<std::size_t>(numbers[i])] = {.batch = std::move(*alone),
                                                     .step = ahead.step,
                                                     .uses = 0,
                                                     .task = {},
                                                     .scores = std::vector<double>(samples),
                                                     .baselines = {},
                                                     .components = {}};
    }
  }
  return saved;
}

Status Trainer::restore_ahead(const std::filesystem::path& file, std::int64_t step) {
  ahead_.clear();
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    LOG(info,
        "{}: the checkpoint has no samples that were drawn ahead; the next step's are drawn by its "
        "weights",
        file.string());
    return {};
  }
  const std::string bytes = runtime::rest_of(in);
  const Result<std::vector<SavedGroup>> saved = decode_groups(bytes);
  if (!saved.ok()) return saved.status().with_context(file.string());
  std::span<const SavedGroup> groups = *saved;
  const auto of_step = static_cast<std::size_t>(options_.batch_prompts);
  for (; !groups.empty(); groups = groups.subspan(of_step), ++step) {
    if (groups.size() < of_step) return other_samples(file, step);
    if (const Status restored = restore_step(groups.first(of_step), step, file); !restored.ok())
      return restored;
  }
  return {};
}

Status Trainer::restore_step(std::span<const SavedGroup> groups, std::int64_t step,
                             const std::filesystem::path& file) {
  // As many steps ahead as now, unless the run goes on with another number.
  const std::int64_t weights =
      std::max<std::int64_t>(0, step - 1 - options_.rollout_workers->steps_ahead);
  Ahead ahead{.step = step,
              .weights = weights,
              .position = feed_->position(),
              .prompts = {},
              .generated = {},
              .restored = {}};
  Result<StepPrompts> prompts = feed_->next(step);
  if (!prompts.ok()) return prompts.status();
  ahead.prompts = std::move(*prompts);
  for (const PromptShard& shard : ahead.prompts.shards) {
    RolloutBatch batch;
    for (const std::int64_t number : shard.prompts) {
      const SavedGroup& group = groups[static_cast<std::size_t>(number)];
      if (group.step != step || group.batch.samples() != options_.samples_per_prompt)
        return other_samples(file, step);
      const std::int64_t row[] = {0};
      Result<RolloutBatch> more = append_prompts(batch, group.batch, row);
      if (!more.ok()) return more.status().with_context(file.string());
      batch = std::move(*more);
    }
    Result<ObjectRef<RolloutBatch>> ref = runtime_.put(batch);
    if (!ref.ok()) return ref.status();
    ahead.restored.push_back({.batch = std::move(*ref), .summary = summarize(batch)});
  }
  ahead_.push_back(std::move(ahead));
  return {};
}

}  // namespace rl
