#include "rl/run/rl/rl_checkpoint.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rl/checkpoint/changed_keys.h"
#include "rl/checkpoint/checkpoint.h"
#include "rl/checkpoint/resume.h"
#include "rl/weights/atomic_file.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

constexpr const char* kPolicyFolder = "actor";  // verl's names for them
constexpr const char* kCriticFolder = "critic";
constexpr std::int64_t kTrainerStateFormat = 1;
constexpr const char* kFocus = "focus";  // CodapoCredit's, and a list in each state of this format

// What a checkpoint is made from; owns all of it, for the thread that writes.
struct Saving {
  StateCalls::Write policy;
  StateCalls::Write critic;  // empty without one
  nlohmann::ordered_json state;
  std::vector<StateFile> files;
};

// Both roles write at the same time, into their own folders.
Result<std::vector<fs::path>> write_files(const Saving& saving, CheckpointWriter& writer) {
  const auto policy = saving.policy(writer.folder() / kPolicyFolder);
  std::vector<fs::path> expected{kRunStateFile};
  if (saving.critic) {
    const StateCalls::Files critic = saving.critic(writer.folder() / kCriticFolder)();
    if (!critic.ok()) {
      (void)policy();  // it writes into the folder that is about to go
      return critic.status();
    }
    for (const std::string& file : *critic) expected.push_back(fs::path(kCriticFolder) / file);
  }
  const StateCalls::Files files = policy();
  if (!files.ok()) return files.status();
  for (const std::string& file : *files) expected.push_back(fs::path(kPolicyFolder) / file);
  const Status written = writer.write_json(kRunStateFile, saving.state);
  if (!written.ok()) return written;
  for (const StateFile& extra : saving.files) {
    const Result<std::string> bytes = extra.make();
    if (!bytes.ok()) return bytes.status().with_context(extra.name);
    const Status stored = write_file_atomically(writer.folder() / extra.name, *bytes);
    if (!stored.ok()) return stored;
    expected.emplace_back(extra.name);
  }
  return expected;
}

// Older checkpoints have neither controller nor statistics.
double number_of(const nlohmann::ordered_json& of, const char* key, double otherwise) {
  const auto found = of.find(key);
  return found != of.end() && found->is_number() ? found->get<double>() : otherwise;
}

std::optional<std::int64_t> integer_of(const nlohmann::ordered_json& of, const char* key) {
  const auto found = of.find(key);
  if (found == of.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

}  // namespace

nlohmann::ordered_json RlCheckpoint::state(const RunProgress& progress, std::int64_t epoch) const {
  RewardState rewards = restored_;
  credit_.shaper().save(rewards);
  nlohmann::ordered_json all{{"format", kTrainerStateFormat},
                             {"stage", config_.command()},
                             {"step", progress.step},
                             {"epoch", epoch},
                             {"seed", options_.seed},
                             {"data_position", source_.position()},
                             {"kl_coefficient", rewards.kl_coefficient},
                             {"rewards",
                              {{"steps", rewards.statistics.steps},
                               {"mean", rewards.statistics.mean},
                               {"square", rewards.statistics.square}}},
                             {EarlyStop::kStateKey, progress.early_stop},
                             {"best", progress.best},
                             {ModelIdentity::kStateKey, identity_.to_json()}};
  const nlohmann::ordered_json assigner = credit_.assigner().save();
  for (const auto& [name, value] : assigner.items()) {
    CHECK(!all.contains(name));
    all[name] = value;
  }
  all.emplace(kFocus, nlohmann::ordered_json::array());
  return all;
}

Result<CheckpointSaver::WriteFiles> RlCheckpoint::copy(bool async,
                                                       nlohmann::ordered_json state) const {
  Saving saving{{}, {}, std::move(state), {}};
  saving.files.push_back(
      {kSavedConfigFile, [yaml = config_.to_yaml()] { return Result<std::string>(yaml); }});
  for (StateFile& file : source_.state_files()) saving.files.push_back(std::move(file));
  Result<StateCalls::Write> policy = models_.policy_state(async);
  if (!policy.ok()) return policy.status();
  saving.policy = std::move(*policy);
  if (models_.has_critic()) {
    Result<StateCalls::Write> critic = models_.critic_state(async);
    if (!critic.ok()) return critic.status();
    saving.critic = std::move(*critic);
  }
  return CheckpointSaver::WriteFiles([saving = std::move(saving)](CheckpointWriter& writer) {
    return write_files(saving, writer);
  });
}

Result<SavedAt> RlCheckpoint::restore(const fs::path& folder, const nlohmann::ordered_json& state) {
  const Result<SavedAt> at = check(folder / kRunStateFile, state);
  if (!at.ok()) return at;
  // Before anything is loaded, since it may be refused.
  CreditAssigner& assigner = credit_.assigner();
  const nlohmann::ordered_json before = assigner.save();
  if (const Status restored = assigner.restore(state); !restored.ok())
    return restored.with_context((folder / kRunStateFile).string());
  tell_changed_keys(folder, config_);
  if (const Status loaded = load(folder, state, *at); !loaded.ok()) {
    CHECK(assigner.restore(before).ok());
    return loaded.with_context("resuming from " + folder.string());
  }
  restored_ = read_rewards(state);
  credit_.shaper().restore(restored_);
  return at;
}

Result<SavedAt> RlCheckpoint::check(const fs::path& file,
                                    const nlohmann::ordered_json& state) const {
  if (const Status own = check_state_owner(state, file, config_.command()); !own.ok()) return own;
  const std::optional<std::int64_t> step = integer_of(state, "step"),
                                    epoch = integer_of(state, "epoch");
  const bool complete = integer_of(state, "format") == kTrainerStateFormat &&
                        step.value_or(-1) >= 0 && epoch.value_or(-1) >= 0 &&
                        state.contains("data_position");
  if (!complete)
    return runtime::invalid_argument(file.string() + ": not a state that this version wrote");
  return SavedAt{.step = *step, .epoch = *epoch};
}

RewardState RlCheckpoint::read_rewards(const nlohmann::ordered_json& state) const {
  const KlControllerOptions& kl = options_.kl_control;
  RewardState rewards{.kl_coefficient = kl.adaptive
                                            ? number_of(state, "kl_coefficient", kl.coefficient)
                                            : kl.coefficient};
  if (const auto found = state.find("rewards"); found != state.end() && found->is_object()) {
    rewards.statistics = {
        .steps = std::max<std::int64_t>(integer_of(*found, "steps").value_or(0), 0),
        .mean = number_of(*found, "mean", 0.0),
        .square = number_of(*found, "square", 0.0)};
  }
  return rewards;
}

Status RlCheckpoint::load(const fs::path& folder, const nlohmann::ordered_json& state,
                          const SavedAt& at) {
  Status status = feed_.resume(nlohmann::json(state["data_position"]));
  if (status.ok()) status = models_.load_policy(folder / kPolicyFolder);
  if (status.ok() && models_.has_critic()) {
    status = models_.load_critic(folder / kCriticFolder);
    std::error_code ignored;
    if (!status.ok() && !fs::exists(folder / kCriticFolder, ignored)) {
      return runtime::invalid_argument(
          "the checkpoint has no critic, which algorithm.adv_estimator needs: continue with the "
          "estimator of that run (its config.yaml), or start a new run with "
          "another trainer.default_local_dir");
    }
  }
  return status.ok() ? source_.restore(folder, at) : status;
}

Status check_rl_checkpoint(const fs::path& folder, const Config& config,
                           const ModelIdentity& identity) {
  const Result<nlohmann::ordered_json> state = read_checkpoint_json(folder, kRunStateFile);
  if (!state.ok()) return state.status();
  if (const Status own = check_state_owner(*state, folder / kRunStateFile, config.command());
      !own.ok())
    return own;
  return check_same_model(*state, folder, identity, "actor_rollout_ref.model.path");
}

}  // namespace rl
