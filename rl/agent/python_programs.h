// The Python programs of the processes that tools, interactions and agent loops run in: the .py
// files of this folder.
#pragma once

namespace rl {

/// Stand-ins for the modules of verl that tools import, used where verl is not installed:
/// verl.tools.base_tool, verl.tools.schemas, verl.interactions.base and verl.utils.rollout_trace.
extern const char* const kToolModules;

/// Loads the classes that the setup names and calls them. Behind kPythonServer and kToolModules.
extern const char* const kToolProgram;

/// Questions to the process that owns this one. Behind kPythonServer and kToolModules.
extern const char* const kLoopOwner;

/// Stand-ins for the modules of verl that agent loops import (verl.experimental.agent_loop and what
/// belongs to it), whether or not verl is installed. Behind them generate() asks the owner, which
/// has the tokenizer, too. Behind kLoopOwner.
extern const char* const kLoopModules;

/// An event loop in which many agent loops run at once. Behind kLoopModules.
extern const char* const kLoopProgram;

}  // namespace rl
