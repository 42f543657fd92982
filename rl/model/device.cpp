#include "rl/model/device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/DeviceType.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "rl/cuda/loaded_library.h"
#include "rl/cuda/virtual_memory.h"

namespace rl {
namespace {

constexpr const char* kCure = "; take device cpu";
constexpr const char* kCudaLibrary = "libtorch_cuda.so";
constexpr const char* kDriver = "libcuda.so.1";

std::string unknown(const std::string& name) {
  return "device is '" + name + "'; it can be cpu, cuda or cuda:NUMBER";
}

// Opens one of LibTorch's own libraries where the one that this process runs with lies, or as the
// loader finds it. Empty: it is open; else what the loader said.
std::string open_next_to_torch(const std::string& library) {
  const std::filesystem::path folder = folder_of_loaded("libtorch_cpu.so");
  if (::dlopen((folder / library).c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return "";
  if (::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return "";
  return ::dlerror();
}

// The library registers itself with LibTorch. One program serves machines with and without it, so
// nothing links it.
runtime::Status open_cuda() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const std::string failure = open_next_to_torch(kCudaLibrary);
  if (!failure.empty())
    return runtime::unavailable("the LibTorch that this program runs with has no CUDA (" + failure +
                                ")");
  // LibTorch decides once a process whether it has CUDA: at the first backward pass, or question
  // for it.
  if (!at::detail::getCUDAHooks().isBuilt())
    return runtime::unavailable(
        "CUDA was opened too late in this process, which has computed a backward pass or asked for "
        "CUDA before; call find_device(\"cuda\") first");
  if (!at::hasCUDA()) return runtime::unavailable("LibTorch finds no CUDA device on this machine");
  // Sums of a product are fp32, also where cuBLAS splits it.
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
  return {};
}

runtime::Result<at::Device> find_cuda(const std::string& name) {
  at::Device device(at::kCUDA, 0);
  try {
    device = at::Device(name);
  } catch (const c10::Error&) {
    return runtime::invalid_argument(unknown(name));
  }
  if (const runtime::Status opened = open_cuda(); !opened.ok())
    return runtime::Status(opened.code(), "device " + name + ": " + opened.message() + kCure);
  const int devices = at::detail::getCUDAHooks().deviceCount();
  if (device.index() >= devices)
    return runtime::unavailable("device " + name + ": this machine has " + std::to_string(devices) +
                                " CUDA devices, numbered from 0" + kCure);
  return at::Device(at::kCUDA, device.has_index() ? device.index() : 0);
}

// What makers of other accelerators call their plugin, and it calls itself.
runtime::Result<at::Device> find_plugin(const std::string& name) {
  const std::string kind = name.substr(0, name.find(':'));
  if (kind.empty() ||
      !std::all_of(kind.begin(), kind.end(), [](unsigned char c) { return std::islower(c) != 0; }))
    return runtime::invalid_argument(unknown(name));
  const std::string library = "libtorch_" + kind + ".so";
  if (const std::string failure = open_next_to_torch(library); !failure.empty())
    return runtime::unavailable(unknown(name) +
                                "; of another device LibTorch's plugin is needed: " + failure);
  if (c10::get_privateuse1_backend() != kind)
    return runtime::unavailable("device " + name + ": " + library + " registers '" +
                                c10::get_privateuse1_backend() + "' with LibTorch" + kCure);
  try {
    const at::Device device(name);
    return at::Device(device.type(), device.has_index() ? device.index() : 0);
  } catch (const c10::Error&) {
    return runtime::invalid_argument(unknown(name));
  }
}

}  // namespace

runtime::Result<at::Device> find_device(const std::string& name) {
  if (name.empty() || name == "cpu") return at::Device(at::kCPU);
  return name == "cuda" || name.starts_with("cuda:") ? find_cuda(name) : find_plugin(name);
}

void open_devices_before_training() {
  static const bool once = [] {
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    const bool hidden = visible != nullptr && *visible == '\0';
    // Without the driver there is nothing to open, and nothing to wait for.
    if (!hidden && ::dlopen(kDriver, RTLD_LAZY | RTLD_LOCAL) != nullptr)
      (void)open_next_to_torch(kCudaLibrary);
    return true;
  }();
  (void)once;
}

std::string device_kind(const at::Device& device) {
  return c10::DeviceTypeName(device.type(), /*lower_case=*/true);
}

std::optional<DeviceRoom> device_room(const at::Device& device) {
  auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
  if (device.is_cpu() || allocator == nullptr) return std::nullopt;
  try {
    const auto [free, total] = allocator->getMemoryInfo(device.index());
    return DeviceRoom{.free = static_cast<std::int64_t>(free),
                      .total = static_cast<std::int64_t>(total)};
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

std::optional<std::int64_t> peak_device_bytes(const at::Device& device) {
  auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
  if (device.is_cpu() || allocator == nullptr) return std::nullopt;
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const std::int64_t tensors = allocator->getDeviceStats(device.index()).reserved_bytes[kAll].peak;
  if (tensors == 0) return std::nullopt;
  const runtime::Result<std::shared_ptr<VirtualMemory>> pages =
      virtual_memory_of(device_kind(device), device.index());
  return tensors + (pages.ok() ? static_cast<std::int64_t>((*pages)->most_bytes()) : 0);
}

void set_matmul_precision(const std::string& precision) {
  at::globalContext().setFloat32MatmulPrecision(precision);
}

void release_cached_memory(const at::Device& device) {
  const c10::DeviceGuard guard(device);
  if (auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type())))
    allocator->emptyCache();
}

}  // namespace rl
