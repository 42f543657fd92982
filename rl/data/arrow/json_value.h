// Values of Arrow arrays as JSON.
#pragma once

#include <arrow/array.h>
#include <nlohmann/json.hpp>

#include "runtime/core/result.h"

namespace rl {

/// The value at `index` of an array that was validated. Dates, times and decimals are texts, maps
/// are objects where their keys are texts, bytes are texts. kUnimplemented: a type that JSON has no
/// form for.
runtime::Result<nlohmann::ordered_json> arrow_value(const arrow::Array& array, std::int64_t index);

}  // namespace rl
