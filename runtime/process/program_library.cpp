#include "runtime/process/program_library.h"

#include <system_error>

namespace runtime {

std::filesystem::path program_library(const std::string& name) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return name;
  const std::filesystem::path found = program.parent_path().parent_path() / "lib" / name;
  return std::filesystem::exists(found, error) ? found : std::filesystem::path(name);
}

}  // namespace runtime
