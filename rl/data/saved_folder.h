// Folders of Hugging Face's `save_to_disk`: state.json names Arrow streams, dataset_dict.json names
// splits, each such a folder.
#pragma once

#include <memory>
#include <string>

#include "rl/data/row_source.h"

namespace rl {

/// As open_rows. kInvalidArgument: neither kind of folder, several splits and none chosen (the
/// message lists them), a file it names is missing.
runtime::Result<std::unique_ptr<RowSource>> open_saved_folder(const std::string& folder,
                                                              const RowSourceOptions& options);

/// As create_rows; the folder appears with commit(). kInvalidArgument: there is something at
/// `folder` already.
runtime::Result<std::unique_ptr<RowSink>> create_saved_folder(const std::string& folder,
                                                              const RowType& type);

}  // namespace rl
