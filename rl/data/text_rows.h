// Rows of text files: JSON lines, a JSON list, CSV.
#pragma once

#include <memory>
#include <string>

#include "rl/data/row_source.h"

namespace rl {

/// `form` is one of the texts'. Errors as open_rows.
runtime::Result<std::unique_ptr<RowSource>> open_text_rows(const std::string& file, RowForm form,
                                                           const RowSourceOptions& options);

/// Creates a file of rows of one of the texts' forms. Errors as create_rows.
runtime::Result<std::unique_ptr<RowSink>> create_text_rows(const std::string& file, RowForm form,
                                                           const RowType& type);

}  // namespace rl
