#include "rl/data/arrow_library.h"

#include <dlfcn.h>

#include <system_error>

namespace rl {
namespace {

constexpr const char* kFileName = "libstarling_arrow.so";

std::filesystem::path beside_executable() {
  std::error_code error;
  const std::filesystem::path executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return kFileName;
  const std::filesystem::path candidate =
      executable.parent_path().parent_path() / "lib" / kFileName;
  return std::filesystem::exists(candidate, error) ? candidate : std::filesystem::path(kFileName);
}

runtime::Result<ArrowBackend*> load() {
  const std::filesystem::path file = beside_executable();
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return runtime::unavailable("Parquet and Arrow need " + std::string(kFileName) +
                                " in ../lib next to the program: " + dlerror() +
                                "; `make build` builds it, `make install` installs it");
  const auto backend =
      reinterpret_cast<ArrowBackend* (*)(int)>(dlsym(handle, "starling_arrow_backend"));
  ArrowBackend* found = backend != nullptr ? backend(kArrowBackendAbi) : nullptr;
  if (found == nullptr)
    return runtime::unimplemented(file.string() +
                                  " belongs to another version of this program: build both again");
  return found;
}

}  // namespace

runtime::Result<ArrowBackend*> load_arrow() {
  static const runtime::Result<ArrowBackend*> loaded = load();
  return loaded;
}

}  // namespace rl
