#include "rl/cuda/plugin_memory.h"

#include <dlfcn.h>

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

// LibTorch's plugins are opened for all of the process.
template <class Function>
Status find_function(const std::string& name, const char* what, Function& function) {
  const std::string symbol = name + "_" + what;
  function = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, symbol.c_str()));
  if (function != nullptr) return {};
  return runtime::unimplemented("device " + name + ": libtorch_" + name + ".so has no function " +
                                symbol + ", without which its memory does not come by pages");
}

}  // namespace

Result<std::unique_ptr<PluginMemory>> PluginMemory::open(const std::string& name) {
  std::unique_ptr<PluginMemory> memory(new PluginMemory(name));
  Status bound = find_function(name, "page_bytes", memory->page_bytes_);
  if (bound.ok()) bound = find_function(name, "reserve", memory->reserve_);
  if (bound.ok()) bound = find_function(name, "release", memory->release_);
  if (bound.ok()) bound = find_function(name, "map", memory->map_);
  if (bound.ok()) bound = find_function(name, "unmap", memory->unmap_);
  if (!bound.ok()) return bound;
  return memory;
}

Result<void*> PluginMemory::reserve(std::size_t bytes) {
  void* const begin = reserve_(bytes);
  if (begin != nullptr) return begin;
  return runtime::resource_exhausted("device " + name_ + " has no addresses for " +
                                     std::to_string(bytes >> 20) + " MiB");
}

Status PluginMemory::map(void* begin, std::size_t bytes) {
  if (map_(begin, bytes) == 0) return {};
  return runtime::resource_exhausted("device " + name_ + " has no memory for " +
                                     std::to_string(bytes >> 20) + " MiB more");
}

}  // namespace rl
