// The process's environment variables.
#pragma once

#include <map>
#include <string>

namespace runtime {

/// Variables by name.
using Environment = std::map<std::string, std::string>;

/// std::getenv; in a simulation the variable of the simulated process. Null: not set.
const char* environment_variable(const char* name);

}  // namespace runtime
