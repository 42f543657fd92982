// The Python program of the processes that tools and interactions run in.
#pragma once

namespace rl {

/// Stand-ins for the modules of verl that tools import, used where verl is not installed:
/// verl.tools.base_tool, verl.tools.schemas, verl.interactions.base and verl.utils.rollout_trace.
extern const char* const kToolModules;

/// Loads the classes that the setup names and calls them. Behind kPythonServer and kToolModules.
extern const char* const kToolProgram;

}  // namespace rl
