// The place of the libraries that belong to a program and are loaded where they are needed.
#pragma once

#include <filesystem>
#include <string>

namespace runtime {

/// "../lib/NAME" next to this program. Where that is not there, NAME alone, which the loader then
/// looks for.
std::filesystem::path program_library(const std::string& name);

}  // namespace runtime
