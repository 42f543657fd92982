// CudaMemory: virtual memory of a CUDA device, by the driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rl/cuda/virtual_memory.h"

namespace rl {

/// The functions of the driver that are used, with the types of its stable binary interface.
struct CudaMemoryFunctions {
  /// CUmemLocation.
  struct Location {
    int type = 1;  // CU_MEM_LOCATION_TYPE_DEVICE
    int id = 0;
  };
  /// CUmemAllocationProp.
  struct Properties {
    int type = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED
    int handle_types = 0;
    Location location;
    void* win32 = nullptr;
    std::uint64_t flags = 0;
  };
  /// CUmemAccessDesc.
  struct Access {
    Location location;
    int flags = 3;  // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
  };

  int (*granularity)(std::size_t*, const Properties*, int) = nullptr;
  int (*reserve)(std::uint64_t*, std::size_t, std::size_t alignment, std::uint64_t address,
                 unsigned long long flags) = nullptr;
  int (*release)(std::uint64_t, std::size_t) = nullptr;
  int (*create)(std::uint64_t* handle, std::size_t, const Properties*,
                unsigned long long flags) = nullptr;
  int (*destroy)(std::uint64_t handle) = nullptr;
  int (*map)(std::uint64_t, std::size_t, std::size_t offset, std::uint64_t handle,
             unsigned long long flags) = nullptr;
  int (*unmap)(std::uint64_t, std::size_t) = nullptr;
  int (*set_access)(std::uint64_t, std::size_t, const Access*, std::size_t count) = nullptr;
  int (*error_string)(int, const char**) = nullptr;
};

/// Memory is made page by page, since the driver takes away as a whole what it has put there as a
/// whole. The calling thread's CUDA context is that of the device, as LibTorch sets it.
class CudaMemory final : public VirtualMemory {
 public:
  /// `driver`: the library. kUnimplemented: none is there, or it is older than CUDA 10.2.
  static runtime::Result<std::unique_ptr<CudaMemory>> open(
      int index, const std::string& driver = "libcuda.so.1");
  ~CudaMemory() override;

  std::size_t page_bytes() const override { return page_bytes_; }
  runtime::Result<void*> reserve(std::size_t bytes) override;
  void release(void* begin, std::size_t bytes) override;
  runtime::Status map(void* begin, std::size_t bytes) override;
  void unmap(void* begin, std::size_t bytes) override;
  void trim() override;
  std::size_t most_bytes() const override;

 private:
  CudaMemory() = default;
  runtime::Status status(int code, const char* what) const;
  runtime::Status map_page(std::uint64_t address);
  void unmap_page(std::uint64_t address);

  CudaMemoryFunctions functions_;
  CudaMemoryFunctions::Properties properties_;
  std::size_t page_bytes_ = 0;

  mutable std::mutex mutex_;                      // guards what follows
  std::map<std::uint64_t, std::uint64_t> pages_;  // by address: the handle of the memory behind it
  std::vector<std::uint64_t> spare_;              // memory that is behind no address
  std::size_t most_pages_ = 0;                    // of both
};

}  // namespace rl
