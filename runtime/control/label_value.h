// The values that a node's labels may have.
#pragma once

#include <string>

#include "runtime/core/status.h"

namespace runtime {

/// Errors: kInvalidArgument (a label with this value could not be asked for), saying why.
Status check_label_value(const std::string& value);

}  // namespace runtime
