// `starling reward`: rewards without a model, for people who look for a mistake in one.
#pragma once

namespace rl {

/// argv[1] is `score`: scores the responses that a file's rows have, and prints what was compared.
/// Exit codes: 0 all rows have a score, 1 one has none or something failed (said on stderr), 2
/// usage.
int reward_command(int argc, char** argv);

}  // namespace rl
