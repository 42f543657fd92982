// The commands of `starling` that are another program's: starling-rl, found next to it.
#pragma once

namespace placement {

inline constexpr const char* kRlCommands[] = {
    "train",    "sft",    "dpo",      "kto",        "rm",     "pipeline",
    "generate", "score",  "tokenize", "detokenize", "render", "export",
    "inspect",  "report", "data",     "eval",       "reward"};

/// Becomes starling-rl or starling-config, which answer their own --help. Returns only if that
/// fails, with the exit code.
int run_rl_program(int argc, char** argv);

}  // namespace placement
