// `starling eval`: how well a model answers.
#pragma once

namespace rl {

/// argv[0] is the command's name. Generates and scores here, without a cluster.
/// Exit codes: 0 all answers have a score, 1 some have none or something failed (said on stderr), 2
/// usage.
int eval_command(int argc, char** argv);

}  // namespace rl
