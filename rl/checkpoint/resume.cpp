#include "rl/checkpoint/resume.h"

#include <string>

#include "rl/checkpoint/checkpoint.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

// Earlier versions' states of `starling train` do not say so.
std::string command_of(const nlohmann::ordered_json& state) {
  const auto stage = state.find("stage");
  if (stage != state.end()) return stage->is_string() ? stage->get<std::string>() : stage->dump();
  return state.contains("data_position") ? "train" : "";
}

Status check_whose_folder(const fs::path& root, std::string_view command) {
  for (const auto& [step, folder] : list_checkpoints(root)) {
    const Result<nlohmann::ordered_json> state = read_checkpoint_json(folder, kRunStateFile);
    if (!state.ok()) continue;  // damaged: passed over with a warning
    if (const Status own = check_state_owner(*state, folder / kRunStateFile, command); !own.ok())
      return own;
  }
  return {};
}

Result<std::optional<fs::path>> named_checkpoint(const fs::path& path) {
  const auto inside = list_checkpoints(path);
  const Status status =
      inside.empty() ? verify_checkpoint(path)
                     : runtime::invalid_argument(
                           path.string() + " has checkpoints and is none: name one of them, like " +
                           inside.front().second.string());
  if (!status.ok()) return status.with_context("trainer.resume_from_path");
  return std::optional<fs::path>(path);
}

}  // namespace

Result<ResumeOptions> ResumeOptions::from_config(const Config& config) {
  ConfigReader read(config);
  const std::string mode = read.get_string("trainer.resume_mode");
  ResumeOptions options{.path = read.find_string("trainer.resume_from_path").value_or("")};
  if (!read.status().ok()) return read.status();
  options.mode = mode == "disable"       ? ResumeMode::kDisable
                 : mode == "resume_path" ? ResumeMode::kPath
                                         : ResumeMode::kAuto;
  if (options.mode == ResumeMode::kPath && options.path.empty())
    return runtime::invalid_argument(
        "trainer.resume_mode=resume_path needs trainer.resume_from_path=.../global_step_N");
  return options;
}

Status check_state_owner(const nlohmann::ordered_json& state, const fs::path& file,
                         std::string_view command) {
  const std::string whose = command_of(state);
  if (whose.empty() || whose == command) return {};
  return runtime::invalid_argument(
      file.string() + ": of a run of `starling " + whose + "`, not of `starling " +
      std::string(command) +
      "`: set trainer.default_local_dir to another folder (or trainer.resume_from_path, where that "
      "names it, to a checkpoint of this command). To train on from that run's model, name it "
      "as the model");
}

Result<std::optional<fs::path>> checkpoint_to_resume(const ResumeOptions& options,
                                                     const fs::path& root,
                                                     std::string_view command) {
  if (const Status own = check_whose_folder(root, command); !own.ok()) return own;
  switch (options.mode) {
    case ResumeMode::kDisable:
      if (const auto there = list_checkpoints(root); !there.empty()) {
        LOG(warn,
            "{}: has {} checkpoint(s) of an earlier run, up to step {}. Those of the same step are "
            "replaced, and those of later steps stay, next to this run's",
            root.string(), there.size(), there.front().first);
      }
      return std::optional<fs::path>();
    case ResumeMode::kAuto: return latest_whole_checkpoint(root);
    case ResumeMode::kPath: return named_checkpoint(options.path);
  }
  return std::optional<fs::path>();
}

}  // namespace rl
