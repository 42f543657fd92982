// `starling generate`: completions of prompts, for looking at a model.
#pragma once

namespace rl {

/// argv[0] is the command's name. Loads the model here, without a cluster.
/// Exit codes: 0 all prompts completed, 1 something failed (said on stderr), 2 usage.
int generate_command(int argc, char** argv);

}  // namespace rl
