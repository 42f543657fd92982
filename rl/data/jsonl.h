// JSONL files as rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rl/data/dataset.h"
#include "runtime/core/status.h"

namespace rl {

/// Appends the rows of one file; blank lines are skipped. Errors name file and line, as Dataset::load says.
runtime::Status read_jsonl(const std::string& file, const DatasetOptions& options, std::vector<DataRow>& rows);

/// One line as a row; `where` goes into it and into messages.
runtime::Result<DataRow> parse_row(std::string_view line, const std::string& prompt_key, const std::string& where);

}  // namespace rl
