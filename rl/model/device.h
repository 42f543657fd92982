// Where a model's weights are, by name.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "runtime/core/result.h"

namespace rl {

/// "cpu" (or nothing), "cuda" or "cuda:1"; "NAME" for an accelerator whose plugin of LibTorch is
/// libtorch_NAME.so and registers that name. To be called before anything else asks LibTorch for
/// the device, since its library is opened here. kInvalidArgument: no name of a device.
/// kUnavailable: LibTorch has no library for it here, or the machine has no such device; the
/// message says which.
runtime::Result<at::Device> find_device(const std::string& name);

}  // namespace rl
