// Answers of `starling train` and the stages about a configuration without LibTorch: --check,
// --config-schema. The program starling-config.
#pragma once

namespace rl {

/// Whether these arguments of `train` or a stage are for check_command().
bool is_check_command(int argc, char** argv);

/// As main(): argv[0] is the command's name: whose keys are judged. 0: nothing is refused.
int check_command(int argc, char** argv);

}  // namespace rl
