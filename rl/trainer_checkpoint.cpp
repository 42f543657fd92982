// What is saved of a run, and resuming. When it is written is CheckpointSaver's.
#include <utility>

#include "rl/train/changed_keys.h"
#include "rl/trainer.h"
#include "rl/weights/atomic_file.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

constexpr const char* kPolicyFolder = "actor";  // verl's names for them
constexpr const char* kCriticFolder = "critic";
constexpr const char* kSamplesFile = "samples.bin";
constexpr const char* kAheadFile = "ahead.bin";
constexpr const char* kPartialFile = "partial.bin";
constexpr std::int64_t kTrainerStateFormat = 1;

// Of what the controller alone knows; made by the thread that writes.
struct ExtraFile {
  const char* name;
  std::function<Result<std::string>()> make;
};

// What a checkpoint is made from; owns all of it, for the thread that writes.
struct Saving {
  runtime::Runtime& runtime;
  WriteState policy;
  WriteState critic;  // empty without one
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
    Result<RolloutBatch> alone =
        batch ? append_prompts({}, *batch, row) : Result<RolloutBatch>(runtime::not_found("lost"));
    if (!alone.ok()) continue;
    saved.push_back({std::move(*alone), group.step, group.uses, group.task, group.scores,
                     group.baselines, group.components});
  }
  return saved;
}

// Both roles write at the same time, into folders of their own.
Result<std::vector<fs::path>> write_files(const Saving& saving, CheckpointWriter& writer) {
  const auto policy = saving.policy(writer.folder() / kPolicyFolder);
  std::vector<fs::path> expected{kRunStateFile};
  if (saving.critic) {
    const auto critic = saving.runtime.get(saving.critic(writer.folder() / kCriticFolder));
    if (!critic.ok()) {
      (void)saving.runtime.get(policy);  // it writes into the folder that is about to go
      return critic.status();
    }
    for (const std::string& file : *critic) expected.push_back(fs::path(kCriticFolder) / file);
  }
  const auto files = saving.runtime.get(policy);
  if (!files.ok()) return files.status();
  for (const std::string& file : *files) expected.push_back(fs::path(kPolicyFolder) / file);
  const Status written = writer.write_json(kRunStateFile, saving.state);
  if (!written.ok()) return written;
  for (const ExtraFile& extra : saving.files) {
    const Result<std::string> bytes = extra.make();
    if (!bytes.ok()) return bytes.status().with_context(extra.name);
    const Status stored = write_file_atomically(writer.folder() / extra.name, *bytes);
    if (!stored.ok()) return stored;
    expected.emplace_back(extra.name);
  }
  return expected;
}

}  // namespace

nlohmann::ordered_json Trainer::state_json() const {
  return {{"format", kTrainerStateFormat},
          {"stage", config_.command()},
          {"step", steps_done_},
          {"epoch", epoch_},
          {"seed", options_.seed},
          {"data_position", ahead_.empty() ? feed_->position() : ahead_.front().position},
          {"kl_coefficient", state_.kl_coefficient},
          {"rewards",
           {{"steps", state_.rewards.steps},
            {"mean", state_.rewards.mean},
            {"square", state_.rewards.square}}},
          {EarlyStop::kStateKey, state_.early_stop.to_json()},
          {"best", saver_.best_state()},
          {ModelIdentity::kStateKey, identity_.to_json()},
          {"focus", state_.focus}};
}

bool Trainer::saves_now() const {
  return options_.save.due(steps_done_, stopping_ || steps_done_ == total_steps_, 0);
}

// What was trained before something failed, unless it is on the disk.
void Trainer::keep(const nlohmann::ordered_json& state) {
  if (options_.save.never() || steps_done_ == 0 || saver_.losing()) return;
  saver_.keep(steps_done_, [this, &state] { return copy_state(/*beside=*/false, state); });
}

// As the failed step found it. Not where its samples have moved on what a run goes on from.
void Trainer::keep_before_step(const nlohmann::ordered_json& state) {
  if (updating_ || options_.sample_store.enabled || options_.rollout_workers ||
      options_.partial_rollouts)
    return;
  keep(state);
}

Result<CheckpointSaver::WriteFiles> Trainer::copy_state(bool beside,
                                                        nlohmann::ordered_json state) const {
  Saving saving{runtime_, {}, {}, std::move(state), {}};
  saving.files.push_back(
      {kSavedConfigFile, [yaml = config_.to_yaml()] { return Result<std::string>(yaml); }});
  if (options_.sample_store.enabled)
    saving.files.push_back({kSamplesFile, [&runtime = runtime_, store = sample_store_] {
                              return Result<std::string>(
                                  encode_groups(fetch_groups(runtime, store)));
                            }});
  if (!ahead_.empty())
    saving.files.push_back({kAheadFile, [&runtime = runtime_, ahead = ahead_] {
                              return encode_ahead(runtime, ahead);
                            }});
  if (options_.partial_rollouts)
    saving.files.push_back({kPartialFile, [&runtime = runtime_, partial = partial_] {
                              return encode_partial(runtime, partial);
                            }});
  Result<WriteState> policy = policy_.state(beside);
  if (!policy.ok()) return policy.status();
  saving.policy = std::move(*policy);
  if (!critic_.empty()) {
    Result<WriteState> critic = critic_.state(beside);
    if (!critic.ok()) return critic.status();
    saving.critic = std::move(*critic);
  }
  return CheckpointSaver::WriteFiles([saving = std::move(saving)](CheckpointWriter& writer) {
    return write_files(saving, writer);
  });
}

Result<fs::path> Trainer::save_checkpoint() {
  if (const Status started = start(); !started.ok()) return started;
  return saver_.save_now(steps_done_,
                         [this] { return copy_state(/*beside=*/false, state_json()); });
}

Status Trainer::load_checkpoint(const fs::path& folder) {
  Status status = start();
  if (status.ok()) status = check_model(folder);
  return status.ok() ? restore(folder) : status;
}

Status Trainer::check_model(const fs::path& checkpoint) const {
  const Result<nlohmann::ordered_json> state = read_checkpoint_json(checkpoint, kRunStateFile);
  if (!state.ok()) return state.status();
  if (const Status own = check_whose_state(*state, checkpoint / kRunStateFile, config_.command());
      !own.ok())
    return own;
  return check_same_model(*state, checkpoint, identity_, "actor_rollout_ref.model.path");
}

Status Trainer::restore(const fs::path& folder) {
  saver_.finish();
  const Result<nlohmann::ordered_json> state = read_checkpoint_json(folder, kRunStateFile);
  if (!state.ok()) return state.status();
  const auto integer = [&](const char* key) -> std::optional<std::int64_t> {
    const auto found = state->find(key);
    if (found == state->end() || !found->is_number_integer()) return std::nullopt;
    return found->get<std::int64_t>();
  };
  if (const Status own = check_whose_state(*state, folder / kRunStateFile, config_.command());
      !own.ok())
    return own;
  const bool complete = integer("format") == kTrainerStateFormat &&
                        integer("step").value_or(-1) >= 0 && integer("epoch") &&
                        state->contains("data_position");
  if (!complete)
    return runtime::invalid_argument((folder / kRunStateFile).string() +
                                     ": not a state that this version wrote");
  // Older checkpoints have neither controller nor statistics.
  const auto number = [](const nlohmann::ordered_json& of, const char* key, double otherwise) {
    const auto found = of.find(key);
    return found != of.end() && found->is_number() ? found->get<double>() : otherwise;
  };
  RunState run{.kl_coefficient = number(*state, "kl_coefficient", options_.kl_control.coefficient),
               .rewards = {},
               .early_stop = EarlyStop(options_.early_stop),
               .focus = {}};
  if (!options_.kl_control.adaptive) run.kl_coefficient = options_.kl_control.coefficient;
  if (const auto rewards = state->find("rewards");
      rewards != state->end() && rewards->is_object()) {
    run.rewards = {.steps = static_cast<std::int64_t>(number(*rewards, "steps", 0.0)),
                   .mean = number(*rewards, "mean", 0.0),
                   .square = number(*rewards, "square", 0.0)};
  }
  run.early_stop.restore(*state);
  if (const auto found = state->find("focus");
      found != state->end() && options_.estimator == AdvantageEstimator::kCodapo) {
    for (const nlohmann::ordered_json& row : *found) {
      const bool fits = row.is_number_integer() && row.get<std::int64_t>() >= 0 &&
                        row.get<std::int64_t>() < feed_->rows();
      if (!fits)
        return runtime::invalid_argument((folder / kRunStateFile).string() +
                                         ": its \"focus\" names rows that the data does not have");
      run.focus.push_back(row.get<std::int64_t>());
    }
  }
  tell_changed_keys(folder, config_);
  Status status = feed_->resume(nlohmann::json((*state)["data_position"]));
  if (status.ok()) status = policy_.fetch(&PolicyActor::load, (folder / kPolicyFolder).string());
  if (status.ok() && !critic_.empty())
    status = critic_.fetch(&CriticActor::load, (folder / kCriticFolder).string());
  if (status.ok() && options_.sample_store.enabled) status = restore_samples(folder / kSamplesFile);
  if (status.ok() && !rollouts_.empty())
    status = restore_ahead(folder / kAheadFile, *integer("step") + 1);
  if (status.ok() && options_.partial_rollouts)
    status = restore_partial(folder / kPartialFile, *integer("epoch"));
  if (!status.ok()) return status.with_context("resuming from " + folder.string());
  steps_done_ = *integer("step");
  epoch_ = *integer("epoch");
  state_ = run;
  lost_ = {};
  lost_weights_.clear();
  saver_.resume(folder, *state);
  LOG(info, "continuing after step {} from {}", steps_done_, folder.string());
  return {};
}

}  // namespace rl
