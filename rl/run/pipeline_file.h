// PipelineFile: stages that run one after another, each with what the ones before it made.
//
//   folder: runs/toy              # each stage's folder is below it
//   stages:
//     sft:                        # its name, and the command unless `command` says another
//       model.path: toy
//       data: {dataset_name: toy}
//     rl:
//       command: train
//       config: grpo.yaml         # keys of a file, which those here go before
//       actor_rollout_ref.model.path: ${stages.sft.model}
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rl/config/key_table.h"
#include "runtime/core/result.h"

namespace rl {

/// A key of a stage, and where it was set.
struct PipelineKey {
  std::string key;  // dotted
  nlohmann::ordered_json value;
  std::string origin;  // "pipeline.yaml:12"
};

/// In a stage's folder, once it is complete: the keys that it was run with.
inline constexpr const char* kStageDoneFile = "stage.done";

struct PipelineStage {
  std::string name;
  std::string command;
  std::filesystem::path folder;  // of its checkpoints and logs
  std::vector<PipelineKey>
      keys;  // of its config file, then its own; a later one wins. With trainer.default_local_dir
};

struct PipelineFile {
  std::filesystem::path folder;
  std::vector<PipelineStage> stages;  // in order

  /// Config files are found from the pipeline's folder, all other paths from the working folder, as
  /// the commands do. `overrides` in Hydra's grammar, "STAGE.key=value" or "folder=value", go
  /// before what the file says. Errors name file, line and stage: no stages, or a stage without a
  /// known command. Others are a reference to a stage that does not come before, and one to
  /// something that stages do not have.
  static runtime::Result<PipelineFile> load(const std::filesystem::path& file,
                                            const std::vector<std::string>& overrides = {});
};

/// "${stages.NAME.WHAT}" in a text: NAME and WHAT of each.
std::vector<std::pair<std::string, std::string>> stage_references(
    const nlohmann::ordered_json& value);

/// What `${stages.NAME.WHAT}` stands for: model (a Hugging Face folder), adapter, checkpoint
/// (global_step_N) or folder. kNotFound: there is no such thing, with the cure.
runtime::Result<std::string> stage_output(const PipelineStage& stage, const std::string& what);

/// The stage's keys as one flat YAML file of its command. With `placeholders`, what earlier stages
/// have yet to make stands there as a path that may not exist; else it is an error.
runtime::Result<nlohmann::ordered_json> stage_config(const PipelineFile& pipeline,
                                                     const PipelineStage& stage, bool placeholders);

/// The stage whose folders `file` lies in; nullptr: none makes it.
const PipelineStage* stage_that_makes(const PipelineFile& pipeline,
                                      const std::filesystem::path& file);

/// A stage before those before it have run.
struct StagePreview {
  nlohmann::ordered_json config;            // of its command, to be judged and not run
  std::vector<std::string> stand_ins = {};  // what stands for what, for people
};

/// The model that an earlier stage begins with stands in for the one that it has yet to make. A new
/// adapter of its rank stands in for an adapter. Both have the size and the tokenizer of what they
/// stand for. What has nothing to stand for it is an error.
runtime::Result<StagePreview> preview_stage(const PipelineFile& pipeline,
                                            const PipelineStage& stage);

}  // namespace rl
