// PluginMemory: virtual memory of a device that is not CUDA.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "rl/cuda/virtual_memory.h"

namespace rl {

/// By functions of the device's plugin, which this process has opened:
///
///   size_t NAME_page_bytes(void);
///   void*  NAME_reserve(size_t bytes);              NULL: there are no addresses left
///   void   NAME_release(void* begin, size_t bytes);
///   int    NAME_map(void* begin, size_t bytes);     0; else the device has no memory left
///   void   NAME_unmap(void* begin, size_t bytes);
class PluginMemory final : public VirtualMemory {
 public:
  /// kUnimplemented: the plugin lacks one of these functions, which the message names.
  static runtime::Result<std::unique_ptr<PluginMemory>> open(const std::string& name);

  std::size_t page_bytes() const override { return page_bytes_(); }
  runtime::Result<void*> reserve(std::size_t bytes) override;
  void release(void* begin, std::size_t bytes) override { release_(begin, bytes); }
  runtime::Status map(void* begin, std::size_t bytes) override;
  void unmap(void* begin, std::size_t bytes) override { unmap_(begin, bytes); }
  void trim() override {}
  std::size_t most_bytes() const override { return 0; }

 private:
  explicit PluginMemory(std::string name) : name_(std::move(name)) {}

  const std::string name_;
  std::size_t (*page_bytes_)() = nullptr;
  void* (*reserve_)(std::size_t) = nullptr;
  void (*release_)(void*, std::size_t) = nullptr;
  int (*map_)(void*, std::size_t) = nullptr;
  void (*unmap_)(void*, std::size_t) = nullptr;
};

}  // namespace rl
