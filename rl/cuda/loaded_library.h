// The path of a shared library that this process has loaded.
#pragma once

#include <link.h>

#include <filesystem>
#include <string>
#include <utility>

namespace rl {

/// The folder of the loaded library with that file name ("libtorch_cpu.so"), as the loader found
/// it; empty where none is loaded. What belongs to a library lies at fixed places around it,
/// whatever the program's own search path. Any thread.
inline std::filesystem::path folder_of_loaded(const std::string& library) {
  std::pair<std::string, std::filesystem::path> search{library, {}};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        auto& [name, folder] = *static_cast<decltype(search)*>(context);
        const std::filesystem::path file(info->dlpi_name != nullptr ? info->dlpi_name : "");
        if (file.filename() != name) return 0;
        folder = file.parent_path();
        return 1;
      },
      &search);
  return search.second;
}

}  // namespace rl
