#include "rl/cuda/cuda_library.h"

#include <dlfcn.h>

#include <string>

#include "runtime/process/program_library.h"

namespace rl {
namespace {

constexpr const char* kFileName = "libstarling_cuda.so";

template <class Function>
bool bind(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

}  // namespace

runtime::Result<std::unique_ptr<CudaLibrary>> CudaLibrary::load(const std::filesystem::path& path) {
  const std::filesystem::path file = path.empty() ? runtime::program_library(kFileName) : path;
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    return runtime::unavailable("CUDA kernels: " + std::string(dlerror()) +
                                "; build them with `make GPU=1` where nvcc is installed");
  }
  std::unique_ptr<CudaLibrary> library(new CudaLibrary(handle));
  decltype(&starling_cuda_abi) abi = nullptr;
  if (!bind(handle, "starling_cuda_abi", abi)) {
    return runtime::unavailable("CUDA kernels: " + file.string() + " is not Starling's library");
  }
  if (int found = abi(); found != STARLING_CUDA_ABI) {
    return runtime::unimplemented("CUDA kernels: " + file.string() + " has ABI " +
                                  std::to_string(found) + ", this program needs " +
                                  std::to_string(STARLING_CUDA_ABI) +
                                  "; rebuild it with `make GPU=1`");
  }
  if (!bind(handle, "starling_cuda_error", library->error_) ||
      !bind(handle, "starling_cuda_adamw", library->adamw) ||
      !bind(handle, "starling_cuda_target_logprobs", library->target_logprobs) ||
      !bind(handle, "starling_cuda_squared_norm", library->squared_norm)) {
    return runtime::unavailable("CUDA kernels: " + file.string() +
                                " lacks a function: " + dlerror());
  }
  return library;
}

CudaLibrary::~CudaLibrary() { dlclose(handle_); }

runtime::Status CudaLibrary::status(int code, const char* what) const {
  if (code == 0) return {};
  return runtime::internal_error(std::string(what) + ": CUDA says '" + error_(code) + "'");
}

}  // namespace rl
