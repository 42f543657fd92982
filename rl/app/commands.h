// The functions of starling-rl's commands. Each has a row in placement/app/rl_program.h, too, by
// which `starling` knows it.
#pragma once

#include "rl/app/data.h"
#include "rl/app/eval.h"
#include "rl/app/export.h"
#include "rl/app/generate.h"
#include "rl/app/inspect.h"
#include "rl/app/pipeline.h"
#include "rl/app/preference.h"
#include "rl/app/render.h"
#include "rl/app/report.h"
#include "rl/app/reward.h"
#include "rl/app/score.h"
#include "rl/app/sft.h"
#include "rl/app/tokenize.h"
#include "rl/app/train.h"

namespace rl {

/// A tool that people debug with, or what runs other commands: it never starts a cluster.
struct ToolCommand {
  const char* name;
  int (*run)(int argc, char** argv);
};

inline constexpr ToolCommand kToolCommands[] = {
    {"generate", generate_command},     {"score", score_command},   {"tokenize", tokenize_command},
    {"detokenize", detokenize_command}, {"render", render_command}, {"export", export_command},
    {"inspect", inspect_command},       {"report", report_command}, {"data", data_command},
    {"pipeline", pipeline_command},     {"eval", eval_command},     {"reward", reward_command},
};

/// What trains: with a cluster, at hand or private.
struct TrainingCommand {
  const char* name;
  int (*run)(runtime::Runtime& runtime, int argc, char** argv);
};

inline constexpr TrainingCommand kTrainingCommands[] = {{"train", train_command},
                                                        {"sft", sft_command},
                                                        {"dpo", dpo_command},
                                                        {"kto", kto_command},
                                                        {"rm", rm_command}};

}  // namespace rl
