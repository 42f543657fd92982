// One line of JSON as a row.
#pragma once

#include <string>
#include <string_view>

#include "rl/data/data_row.h"
#include "runtime/core/result.h"

namespace rl {

/// `where` goes into the row and into messages. Errors of map_row.
runtime::Result<DataRow> parse_row(std::string_view line, const std::string& prompt_key,
                                   const std::string& where);

}  // namespace rl
