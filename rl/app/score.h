// `starling score`: log-probabilities of given tokens.
#pragma once

namespace rl {

/// argv[0] is the command's name. Reads {"ids": [...]} lines from stdin and writes
/// {"token_logprobs": [...]} lines: the natural-log probability of every token after the first, at
/// temperature 1. Loads the model here, without a cluster. Exit codes: 0 all lines scored, 1
/// something failed (said on stderr), 2 usage.
int score_command(int argc, char** argv);

}  // namespace rl
