// The device that a model's weights are on, by name.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/result.h"

namespace rl {

/// "cpu" (or nothing), "cuda" or "cuda:1"; "NAME" for an accelerator whose plugin of LibTorch is
/// libtorch_NAME.so and registers that name. To be called before anything else asks LibTorch for
/// the device, since its library is opened here. kInvalidArgument: no name of a device.
/// kUnavailable: LibTorch has no library for it here, or the machine has no such device; the
/// message says which.
runtime::Result<at::Device> find_device(const std::string& name);

/// "cuda", or what the plugin calls itself.
std::string device_kind(const at::Device& device);

/// To be called before a process first computes gradients: LibTorch decides then, once and for all,
/// whether it has CUDA. Opens its library where there is one, the driver is installed and
/// CUDA_VISIBLE_DEVICES does not hide all. Any thread; cheap but for the first time.
void open_devices_before_training();

/// The memory of a device, in bytes.
struct DeviceRoom {
  std::int64_t free = 0;
  std::int64_t total = 0;
};

/// Nothing: the CPU, or a device whose allocator does not say.
std::optional<DeviceRoom> device_room(const at::Device& device);

/// The most memory of the device that this process has had, its allocator's cache included.
/// Nothing: the CPU, or a device whose allocator does not say.
std::optional<std::int64_t> peak_device_bytes(const at::Device& device);

/// How products of fp32 matrices are computed on CUDA: "highest" (fp32), "high" (TF32: 10 bits of
/// fraction, several times as fast), "medium". Of the process; for CUDA alone, since the CPU's
/// libraries listen to it, too.
void set_matmul_precision(const std::string& precision);

/// Gives memory that this process keeps for its next tensors back to the device, which other
/// processes share.
void release_cached_memory(const at::Device& device);

}  // namespace rl
