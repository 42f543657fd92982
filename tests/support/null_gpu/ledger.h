// Requests to the null GPU, and its memory. A GPU that computes nothing is preloaded under
// LibTorch's real CUDA library, on a machine without a GPU. All of that library's host side runs:
// dispatch, checks of devices and types, the allocator, streams, copies.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace null_gpu {

/// The kinds of work, of which each call has one.
enum class Work { kLaunch, kProduct, kCopy, kSync, kOther };

struct Counts {
  long launches = 0;  // of kernels
  long products = 0;  // of matrices, by cuBLAS
  long copies = 0;    // between host and device, or within it
  long syncs = 0;     // for which the host waits
};

/// One a process; any thread.
class Ledger {
 public:
  static Ledger& get();

  void add(Work work, const std::string& name);
  void reset();
  Counts counts() const;
  /// "  12 kernel NAME", most frequent first.
  std::vector<std::string> lines() const;

 private:
  Ledger() = default;

  mutable std::mutex mutex_;
  std::map<std::pair<Work, std::string>, long> calls_;
};

/// The device's memory: address space of the host, so that copies go there. One a process; any
/// thread.
class Memory {
 public:
  static Memory& get();

  /// Bytes of the device: NULL_GPU_BYTES, or 80 GiB.
  static std::size_t total();
  std::size_t free() const;

  /// nullptr: more than there is.
  void* allocate(std::size_t bytes);
  void release(void* memory);
  bool has(const void* address) const;

 private:
  Memory() = default;

  mutable std::mutex mutex_;
  std::map<const char*, std::size_t> blocks_;
  std::size_t taken_ = 0;
};

}  // namespace null_gpu

extern "C" {
/// For programs that it is preloaded under; found by dlsym().
void null_gpu_reset();
void null_gpu_counts(null_gpu::Counts* counts);
void null_gpu_print();
}
