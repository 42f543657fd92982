// The process's environment variables.
#pragma once

namespace runtime {

/// std::getenv; in a simulation the variable of the simulated process. Null: not set.
const char* environment_variable(const char* name);

}  // namespace runtime
