// `starling tokenize` and `starling detokenize`: text to ids and back, line by line, for debugging
// and for scripts.
#pragma once

namespace rl {

/// `tokenize --model PATH [--no-special]`: JSON lines {"text": "..."} on stdin to {"ids": [...]} on
/// stdout, each as soon as it is read. A bad line ends it with an error that gives the line's
/// number. Returns the exit code: 0, 1 (failure), 2 (usage).
int tokenize_command(int argc, char** argv);

/// `detokenize --model PATH [--skip-special]`: {"ids": [...]} to {"text": "..."}. As
/// tokenize_command; an id outside the vocabulary is an error.
int detokenize_command(int argc, char** argv);

}  // namespace rl
