#include "runtime/process/gpus.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "runtime/core/environment.h"
#include "runtime/core/log.h"

namespace runtime {

namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";

// What of nvml.h is needed: its functions keep their names and shapes for good (a new shape gets a
// new name).
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
constexpr int kNvmlSuccess = 0;
constexpr unsigned kNameBytes = 96;

struct Nvml {
  void* library = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, NvmlDevice*) = nullptr;
  int (*uuid)(NvmlDevice, char*, unsigned) = nullptr;
  int (*name)(NvmlDevice, char*, unsigned) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;

  ~Nvml() {
    if (library) ::dlclose(library);
  }

  template <class Function>
  bool find(Function& function, const char* symbol) {
    function = reinterpret_cast<Function>(::dlsym(library, symbol));
    return function != nullptr;
  }

  Status open() {
    library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return not_found(std::string("NVML: ") + ::dlerror());
    const bool complete = find(init, "nvmlInit_v2") && find(shutdown, "nvmlShutdown") &&
                          find(error, "nvmlErrorString") && find(count, "nvmlDeviceGetCount_v2") &&
                          find(by_index, "nvmlDeviceGetHandleByIndex_v2") &&
                          find(uuid, "nvmlDeviceGetUUID") && find(name, "nvmlDeviceGetName") &&
                          find(memory, "nvmlDeviceGetMemoryInfo");
    if (!complete) return unavailable("NVML: libnvidia-ml.so.1 lacks a function of version 2");
    return check(init(), "nvmlInit_v2");
  }

  Status check(int code, const char* call) const {
    if (code == kNvmlSuccess) return {};
    const char* text = error(code);
    return unavailable(std::string("NVML: ") + call + ": " +
                       (text ? text : "error " + std::to_string(code)));
  }
};

Result<std::vector<GpuDevice>> list(const Nvml& nvml) {
  unsigned count = 0;
  if (Status status = nvml.check(nvml.count(&count), "nvmlDeviceGetCount_v2"); !status.ok())
    return status;
  std::vector<GpuDevice> devices;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    const std::string which = "device " + std::to_string(i);
    if (Status status = nvml.check(nvml.by_index(i, &device), "nvmlDeviceGetHandleByIndex_v2");
        !status.ok())
      return status.with_context(which);
    GpuDevice found;
    char text[kNameBytes] = {};
    if (Status status = nvml.check(nvml.uuid(device, text, sizeof text), "nvmlDeviceGetUUID");
        !status.ok())
      return status.with_context(which);
    found.uuid = text;
    std::fill(std::begin(text), std::end(text), '\0');
    if (nvml.name(device, text, sizeof text) == kNvmlSuccess) found.model = text;
    NvmlMemory memory{};
    if (nvml.memory(device, &memory) == kNvmlSuccess) found.memory_bytes = memory.total;
    devices.push_back(std::move(found));
  }
  return devices;
}

/// The node's own, in their order; none: not set, all are its own.
std::optional<std::vector<std::string>> own_devices() {
  const char* set = environment_variable(kVisible);
  if (!set) return std::nullopt;
  std::vector<std::string> devices;
  std::string_view rest = set;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    std::string name(rest.substr(0, comma));
    std::erase(name, ' ');
    if (name.empty() || name == "-1" || name == "NoDevFiles")
      break;  // CUDA takes what comes before
    devices.push_back(std::move(name));
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  return devices;
}

std::size_t count_of_kernel() {
  std::error_code error;
  std::size_t gpus = 0;
  for (std::filesystem::directory_iterator gpu("/proc/driver/nvidia/gpus", error), end;
       !error && gpu != end; gpu.increment(error))
    ++gpus;
  return gpus;
}

}  // namespace

Result<std::vector<GpuDevice>> nvml_devices() {
  Nvml nvml;
  if (Status status = nvml.open(); !status.ok()) return status;
  auto devices = list(nvml);
  (void)nvml.shutdown();
  return devices;
}

int machine_gpus() {
  auto devices = nvml_devices();
  if (!devices.ok() && devices.status().code() != ErrorCode::kNotFound)
    LOG(warn, "{}; give the node its GPUs with --num-gpus", devices.status().message());
  std::size_t count = devices.ok() ? devices->size() : count_of_kernel();
  if (auto own = own_devices()) count = std::min(count, own->size());
  return static_cast<int>(count);
}

std::vector<std::string> gpu_names(std::size_t count) {
  std::vector<std::string> names = own_devices().value_or(std::vector<std::string>());
  names.resize(std::min(names.size(), count));
  while (names.size() < count) names.push_back(std::to_string(names.size()));
  return names;
}

Environment gpu_environment(const std::vector<std::string>& names,
                            const std::vector<std::uint32_t>& gpus) {
  std::string text;
  for (std::uint32_t gpu : gpus)
    text += (text.empty() ? "" : ",") + (gpu < names.size() ? names[gpu] : std::to_string(gpu));
  Environment environment{{kVisible, std::move(text)}};
  // CUDA's own order is by speed; NVML's is the bus's.
  if (!environment_variable(kVisible)) environment.emplace("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  return environment;
}

}  // namespace runtime
