// Memory of a device in two halves: addresses, and memory behind them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runtime/core/result.h"

namespace rl {

/// Addresses of a device are reserved first. Memory is put behind some of their pages later, and
/// taken away again. Any thread.
class VirtualMemory {
 public:
  virtual ~VirtualMemory() = default;

  /// All sizes and places below are multiples of it.
  virtual std::size_t page_bytes() const = 0;
  /// kResourceExhausted: there are no addresses left.
  virtual runtime::Result<void*> reserve(std::size_t bytes) = 0;
  /// Of all addresses of a reserve(), behind which there is no memory.
  virtual void release(void* begin, std::size_t bytes) = 0;
  /// The memory holds anything. On failure there is none behind any of these pages.
  /// kResourceExhausted: the device has no memory left. kInternal: what the driver says.
  virtual runtime::Status map(void* begin, std::size_t bytes) = 0;
  /// Nothing may compute with it any more. The memory is kept for the next map() until trim().
  virtual void unmap(void* begin, std::size_t bytes) = 0;
  virtual void trim() = 0;

  /// The most bytes that were there together, what was kept included, since this process began;
  /// 0: the device's allocator of tensors counts them.
  virtual std::size_t most_bytes() const = 0;
};

/// Of a CUDA device by the driver's virtual memory management. Of a device with a plugin of
/// LibTorch (libtorch_NAME.so) by functions of the plugin; see PluginMemory. `kind`: "cuda", or
/// NAME. Of one device there is one. kUnimplemented: the device has none.
runtime::Result<std::shared_ptr<VirtualMemory>> virtual_memory_of(const std::string& kind,
                                                                  int index);

}  // namespace rl
