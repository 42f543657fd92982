// The tables of rotary embeddings on a device, copied there once.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "rl/model/rope.h"

namespace rl {

/// RopeTables as tensors [positions, half].
struct DeviceRopeTables {
  at::Tensor cos;
  at::Tensor sin;
};

/// Copies the tables at the first call for that device, and keeps the copy as long as the tables
/// live. The passes of one model share both. Any thread.
std::shared_ptr<const DeviceRopeTables> device_tables(
    const std::shared_ptr<const RopeTables>& tables, const at::Device& device);

}  // namespace rl
