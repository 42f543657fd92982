// The cluster's description in a journal's folder, in its own file (cluster.json, 0600), so that
// `starling start --head --journal` continues with it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/core/ids.h"
#include "runtime/core/result.h"

namespace placement {

struct ClusterFile {
  runtime::ClusterId cluster;
  std::string token;
  runtime::NodeId node;    // the last one next to the head
  std::string next_token;  // a change to it was begun, and may have been recorded; empty: none
  bool operator==(const ClusterFile&) const = default;
};

/// Nothing when the folder is new. Errors: kInvalidArgument (malformed, or not to be read).
runtime::Result<std::optional<ClusterFile>> read_cluster_file(const std::filesystem::path& journal);
/// Makes the folder if need be.
runtime::Status check_journal_folder(const std::filesystem::path& journal,
                                     const std::optional<ClusterFile>& file);

runtime::Status write_cluster_file(const std::filesystem::path& journal, const ClusterFile& file);

}  // namespace placement
