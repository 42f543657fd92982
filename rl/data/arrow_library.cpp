#include "rl/data/arrow_library.h"

#include <dlfcn.h>

#include "runtime/process/program_library.h"

namespace rl {
namespace {

constexpr const char* kFileName = "libstarling_arrow.so";

runtime::Result<ArrowBackend*> load() {
  const std::filesystem::path file = runtime::program_library(kFileName);
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
