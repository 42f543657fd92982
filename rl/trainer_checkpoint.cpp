// Saving and resuming. What is to be saved is copied between two steps, and written, hashed and moved into place beside the steps that follow. One checkpoint at a time.
#include <chrono>
#include <utility>

#include "rl/train/idle_thread.h"
#include "rl/trainer.h"
#include "rl/weights/atomic_file.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

constexpr const char* kStateFile = "trainer.json";
constexpr const char* kPolicyFolder = "actor";  // verl's names for them
constexpr const char* kCriticFolder = "critic";
constexpr const char* kSamplesFile = "samples.bin";
constexpr const char* kAheadFile = "ahead.bin";
constexpr const char* kPartialFile = "partial.bin";
constexpr std::int64_t kStateFormat = 1;

// Of what the controller alone knows; made by the thread that writes.
struct ExtraFile {
  const char* name;
  std::function<Result<std::string>()> make;
};

// What a checkpoint is made from once the workers have their copies; owns all of it, for the thread that writes.
struct Saving {
  runtime::Runtime& runtime;
  CheckpointWriter writer;
  runtime::ActorHandle<PolicyActor> policy;
  std::optional<runtime::ActorHandle<CriticActor>> critic;
  nlohmann::ordered_json state;
  std::vector<ExtraFile> files;
};

// Stored samples with their tokens. Those that went with a node are left out.
std::vector<SavedGroup> fetch_groups(runtime::Runtime& runtime, const SampleStore& store) {
  std::vector<SavedGroup> saved;
  runtime::ObjectRef<RolloutBatch> ref;
  std::optional<RolloutBatch> batch;  // that ref stands for
  for (const StoredGroup& group : store.groups()) {
    if (!(group.batch == ref)) {
      ref = group.batch;
      Result<RolloutBatch> fetched = runtime.get(ref);
      batch = fetched.ok() ? std::optional(std::move(*fetched)) : std::nullopt;
    }
    const std::int64_t row[] = {group.row};
    Result<RolloutBatch> alone = batch ? append_prompts({}, *batch, row) : Result<RolloutBatch>(runtime::not_found("lost"));
    if (!alone.ok()) continue;
    saved.push_back({std::move(*alone), group.step, group.uses, group.task, group.scores, group.baselines, group.components});
  }
  return saved;
}

// Both roles write at the same time, into folders of their own.
Result<fs::path> write_checkpoint(Saving saving) {
  const auto policy = saving.policy.call(&PolicyActor::write_snapshot, (saving.writer.folder() / kPolicyFolder).string());
  std::vector<fs::path> expected{kStateFile};
  if (saving.critic) {
    const auto critic = saving.runtime.get(saving.critic->call(&CriticActor::write_snapshot, (saving.writer.folder() / kCriticFolder).string()));
    if (!critic.ok()) {
      (void)saving.runtime.get(policy);  // it writes into the folder that is about to go
      return critic.status();
    }
    for (const std::string& file : *critic) expected.push_back(fs::path(kCriticFolder) / file);
  }
  const auto files = saving.runtime.get(policy);
  if (!files.ok()) return files.status();
  for (const std::string& file : *files) expected.push_back(fs::path(kPolicyFolder) / file);
  const Status written = saving.writer.write_json(kStateFile, saving.state);
  if (!written.ok()) return written;
  for (const ExtraFile& extra : saving.files) {
    const Result<std::string> bytes = extra.make();
    if (!bytes.ok()) return bytes.status().with_context(extra.name);
    const Status stored = write_file_atomically(saving.writer.folder() / extra.name, *bytes);
    if (!stored.ok()) return stored;
    expected.emplace_back(extra.name);
  }
  return saving.writer.commit(expected);
}

}  // namespace

nlohmann::ordered_json Trainer::state_json() const {
  return {{"format", kStateFormat},
          {"step", steps_done_},
          {"epoch", epoch_},
          {"seed", options_.seed},
          {"data_position", ahead_.empty() ? feed_->position() : ahead_.front().position},
          {"kl_coefficient", state_.kl_coefficient},
          {"rewards", {{"steps", state_.rewards.steps}, {"mean", state_.rewards.mean}, {"square", state_.rewards.square}}},
          {"early_stop", state_.early_stop.to_json()},
          {"best", state_.best.to_json()}};
}

// All workers hold the same bits, so one of them copies and writes.
Status Trainer::begin_checkpoint(bool best) {
  finish_checkpoint();
  const std::string step = "checkpoint of step " + std::to_string(steps_done_);
  Result<CheckpointWriter> writer = CheckpointWriter::begin(options_.folder, steps_done_);
  if (!writer.ok()) return writer.status().with_context(step);
  Saving saving{runtime_, std::move(*writer), policy_.leader(), {}, state_json(), {}};
  if (options_.sample_store.enabled) saving.files.push_back({kSamplesFile, [&runtime = runtime_, store = sample_store_] { return Result<std::string>(encode_groups(fetch_groups(runtime, store))); }});
  if (!ahead_.empty()) saving.files.push_back({kAheadFile, [&runtime = runtime_, ahead = ahead_] { return encode_ahead(runtime, ahead); }});
  if (options_.partial_rollouts) saving.files.push_back({kPartialFile, [&runtime = runtime_, partial = partial_] { return encode_partial(runtime, partial); }});
  Status copied = runtime_.get(saving.policy.call(&PolicyActor::take_snapshot));
  if (copied.ok() && !critic_.empty()) {
    saving.critic = critic_.leader();
    copied = runtime_.get(saving.critic->call(&CriticActor::take_snapshot));
  }
  if (!copied.ok()) return copied.with_context(step);
  saving_ = std::async(std::launch::async, [saving = std::move(saving), root = options_.folder, kept = options_.checkpoints_kept, number = steps_done_, best, step]() mutable -> Result<fs::path> {
    give_way();
    Result<fs::path> folder = write_checkpoint(std::move(saving));
    if (!folder.ok()) return folder.status().with_context(step);
    const Status marked = best ? mark_best_checkpoint(root, number) : Status();
    if (!marked.ok()) return marked.with_context(step);
    const Status pruned = prune_checkpoints(root, kept);
    if (!pruned.ok()) LOG(warn, "{}", pruned.message());
    return folder;
  });
  return {};
}

// Waits for the checkpoint that is being written, if one is.
void Trainer::finish_checkpoint() {
  if (!saving_.valid()) return;
  const Result<fs::path> saved = saving_.get();
  if (!saved.ok()) return note_save_failure(saved.status());
  best_before_.reset();
  latest_checkpoint_ = *saved;
  save_failure_ = Status();
}

bool Trainer::checkpoint_is_written() const { return saving_.valid() && saving_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

// Training goes on: what has been learned so far is worth more than stopping at once.
void Trainer::note_save_failure(const Status& failure) {
  LOG(error, "{}; training goes on", failure.message());
  save_failure_ = failure;
  if (best_before_) state_.best = *std::exchange(best_before_, {});  // another one may become the best that is kept
}

Result<fs::path> Trainer::save_checkpoint() {
  if (const Status started = start(); !started.ok()) return started;
  const Status begun = begin_checkpoint();
  if (!begun.ok()) return begun;
  Result<fs::path> saved = saving_.get();
  if (saved.ok()) latest_checkpoint_ = *saved;
  return saved;
}

Status Trainer::load_checkpoint(const fs::path& folder) {
  const Status started = start();
  return started.ok() ? restore(folder) : started;
}

Status Trainer::restore(const fs::path& folder) {
  finish_checkpoint();
  const Result<nlohmann::ordered_json> state = read_checkpoint_json(folder, kStateFile);
  if (!state.ok()) return state.status();
  const auto integer = [&](const char* key) -> std::optional<std::int64_t> {
    const auto found = state->find(key);
    if (found == state->end() || !found->is_number_integer()) return std::nullopt;
    return found->get<std::int64_t>();
  };
  const bool complete = integer("format") == kStateFormat && integer("step").value_or(-1) >= 0 && integer("epoch") && state->contains("data_position");
  if (!complete) return runtime::invalid_argument((folder / kStateFile).string() + ": not a state that this version wrote");
  // Older checkpoints have neither controller nor statistics.
  const auto number = [](const nlohmann::ordered_json& of, const char* key, double otherwise) {
    const auto found = of.find(key);
    return found != of.end() && found->is_number() ? found->get<double>() : otherwise;
  };
  RunState run{.kl_coefficient = number(*state, "kl_coefficient", options_.kl_control.coefficient), .rewards = {}, .early_stop = {}, .best = {}};
  if (!options_.kl_control.adaptive) run.kl_coefficient = options_.kl_control.coefficient;
  if (const auto rewards = state->find("rewards"); rewards != state->end() && rewards->is_object()) {
    run.rewards = {.steps = static_cast<std::int64_t>(number(*rewards, "steps", 0.0)), .mean = number(*rewards, "mean", 0.0), .square = number(*rewards, "square", 0.0)};
  }
  if (const auto found = state->find("early_stop"); found != state->end()) run.early_stop = BestSoFar::from_json(*found);
  if (const auto found = state->find("best"); found != state->end()) run.best = BestSoFar::from_json(*found);
  Status status = feed_->resume(nlohmann::json((*state)["data_position"]));
  if (status.ok()) status = policy_.fetch(&PolicyActor::load, (folder / kPolicyFolder).string());
  if (status.ok() && !critic_.empty()) status = critic_.fetch(&CriticActor::load, (folder / kCriticFolder).string());
  if (status.ok() && options_.sample_store.enabled) status = restore_samples(folder / kSamplesFile);
  if (status.ok() && !rollouts_.empty()) status = restore_ahead(folder / kAheadFile, *integer("step") + 1);
  if (status.ok() && options_.partial_rollouts) status = restore_partial(folder / kPartialFile, *integer("epoch"));
  if (!status.ok()) return status.with_context("resuming from " + folder.string());
  steps_done_ = *integer("step");
  epoch_ = *integer("epoch");
  state_ = run;
  latest_checkpoint_ = folder;
  LOG(info, "continuing after step {} from {}", steps_done_, folder.string());
  return {};
}

}  // namespace rl
