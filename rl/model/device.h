// Where a model's weights are, by name.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "runtime/core/result.h"

namespace rl {

/// "cpu" (or nothing), "cuda" or "cuda:1". To be called before anything else asks LibTorch for CUDA, since its library is opened here.
/// kInvalidArgument: another name. kUnavailable: LibTorch has no CUDA library here, or the machine has no such device; the message says which.
runtime::Result<at::Device> find_device(const std::string& name);

}  // namespace rl
