#include "rl/cuda/virtual_memory.h"

#include <map>
#include <mutex>
#include <utility>

#include "rl/cuda/cuda_memory.h"
#include "rl/cuda/plugin_memory.h"

namespace rl {

using runtime::Result;

Result<std::shared_ptr<VirtualMemory>> virtual_memory_of(const std::string& kind, int index) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, int>, std::shared_ptr<VirtualMemory>> opened;
  const std::lock_guard lock(mutex);
  std::shared_ptr<VirtualMemory>& memory = opened[{kind, index}];
  if (memory) return memory;
  if (kind == "cuda") {
    Result<std::unique_ptr<CudaMemory>> cuda = CudaMemory::open(index);
    if (!cuda.ok()) return cuda.status();
    memory = *std::move(cuda);
  } else {
    Result<std::unique_ptr<PluginMemory>> plugin = PluginMemory::open(kind);
    if (!plugin.ok()) return plugin.status();
    memory = *std::move(plugin);
  }
  return memory;
}

}  // namespace rl
