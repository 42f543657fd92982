// Rows of Parquet and Arrow files, and files of rows: what libstarling_arrow.so is made of.
#pragma once

#include <arrow/status.h>

#include <filesystem>
#include <memory>
#include <string>

#include "rl/data/row_source.h"

namespace rl {

/// kInvalidArgument (damaged, cut off), kResourceExhausted (memory, disk), kNotFound; "data file
/// <name>: <Arrow's reason>".
runtime::Status arrow_failure(const std::string& name, const arrow::Status& status);

runtime::Result<std::unique_ptr<RowSource>> open_parquet(const std::string& name,
                                                         const std::filesystem::path& path);
runtime::Result<std::unique_ptr<RowSource>> open_arrow(const std::string& name,
                                                       const std::filesystem::path& path);
/// `form` as ArrowBackend::create.
runtime::Result<std::unique_ptr<RowSink>> create_arrow(const std::string& name,
                                                       const std::filesystem::path& path,
                                                       RowForm form, const RowType& type);

}  // namespace rl
