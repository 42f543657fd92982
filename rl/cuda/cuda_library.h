// Loads libstarling_cuda.so at run time, so that one build of starling-rl serves machines with and
// without CUDA.
#pragma once

#include <filesystem>
#include <memory>

#include "rl/cuda/starling_cuda.h"
#include "runtime/core/result.h"

namespace rl {

/// The kernels of libstarling_cuda.so. Immutable once loaded; the library stays loaded while this
/// lives.
class CudaLibrary {
 public:
  /// Opens the library at `path`, or without one: `libstarling_cuda.so` in ../lib next to the
  /// executable, then by the loader's search. kUnavailable: no such library, or it cannot be loaded
  /// (the message has the loader's reason and the cure). kUnimplemented: it has another
  /// STARLING_CUDA_ABI than this program.
  static runtime::Result<std::unique_ptr<CudaLibrary>> load(const std::filesystem::path& path = {});

  ~CudaLibrary();
  CudaLibrary(const CudaLibrary&) = delete;
  CudaLibrary& operator=(const CudaLibrary&) = delete;

  /// A kernel's return code as a Status: kInternal with CUDA's text.
  runtime::Status status(int code, const char* what) const;

  decltype(&starling_cuda_adamw) adamw = nullptr;
  decltype(&starling_cuda_target_logprobs) target_logprobs = nullptr;
  decltype(&starling_cuda_squared_norm) squared_norm = nullptr;

 private:
  explicit CudaLibrary(void* handle) : handle_(handle) {}

  void* handle_;
  decltype(&starling_cuda_error) error_ = nullptr;
};

}  // namespace rl
