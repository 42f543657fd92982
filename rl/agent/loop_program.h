// The Python program of the processes that a user's agent loops run in.
#pragma once

namespace rl {

/// Stand-ins for the modules of verl that agent loops import (verl.experimental.agent_loop and what
/// belongs to it), whether or not verl is installed: behind them generate() asks the owner of this
/// process, and the tokenizer is its, too. Then the program: an event loop in which many loops run
/// at once. Behind kPythonServer and kToolModules.
extern const char* const kLoopProgram;

}  // namespace rl
