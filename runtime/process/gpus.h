// The machine's GPUs, as NVIDIA's management library knows them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/environment.h"
#include "runtime/core/result.h"

namespace runtime {

struct GpuDevice {
  std::string uuid;   // "GPU-5fd4...": CUDA_VISIBLE_DEVICES takes it as well as the index
  std::string model;  // "NVIDIA H100 80GB HBM3"
  std::uint64_t memory_bytes = 0;
  bool operator==(const GpuDevice&) const = default;
};

/// By index. Loads libnvidia-ml.so.1, which comes with the driver, and lets it go again. Errors:
/// kNotFound (no such library: no driver), kUnavailable (it is there and does not work, in its own
/// words).
Result<std::vector<GpuDevice>> nvml_devices();

/// What an actor's CUDA_VISIBLE_DEVICES has for each GPU that this node offers: the node's own
/// CUDA_VISIBLE_DEVICES where it is set, else the index. A node that offers more than there are
/// (--num-gpus) counts on.
std::vector<std::string> gpu_names(std::size_t count);

/// How many GPUs this node can give to actors: those of the machine that its own
/// CUDA_VISIBLE_DEVICES leaves it. NVML finds them, or the kernel's driver where NVML is not
/// installed; 0 without either.
int machine_gpus();

/// What has a process see these of the node's GPUs and no others. `names` as gpu_names() gave them.
Environment gpu_environment(const std::vector<std::string>& names,
                            const std::vector<std::uint32_t>& gpus);

}  // namespace runtime
