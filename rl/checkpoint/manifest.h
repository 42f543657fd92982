// Manifest: the list of a checkpoint's files, with hashes that reveal damaged ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rl/checkpoint/range_hasher.h"
#include "runtime/core/result.h"

namespace rl {

/// A file of a checkpoint. Its ranges follow on each other from its first byte to its last.
struct HashedFile {
  std::filesystem::path path;  // relative to the checkpoint's folder
  std::uint64_t bytes = 0;
  std::vector<RangeHash> ranges;

  bool operator==(const HashedFile&) const = default;
};

struct Manifest {
  std::optional<std::int64_t> step;  // what the checkpoint is of
  std::vector<HashedFile> files;

  /// A file of one range has its hash, as in the manifests of earlier versions, others a list of
  /// sizes and hashes.
  nlohmann::ordered_json to_json() const;

  /// Of this version's and of earlier ones. Errors: kInvalidArgument: damaged, of a later version,
  /// without files, or with one outside of the folder.
  static runtime::Result<Manifest> from_json(const nlohmann::ordered_json& json);

  bool operator==(const Manifest&) const = default;
};

/// Forces these files to the disk and hashes, on several threads, what their ranges leave out; the
/// files have all of it then. Reads past the page cache: it is not read again soon. Errors: as
/// errno says, with the path.
runtime::Status complete_hashes(const std::filesystem::path& folder,
                                std::vector<HashedFile>& files);

/// Compares every file with its hashes, on several threads, by way of the page cache, where loading
/// finds it. kInvalidArgument names the first file that is missing, of another size, or damaged;
/// kResourceExhausted: no memory or descriptors to find out.
runtime::Status verify_files(const std::filesystem::path& folder,
                             const std::vector<HashedFile>& files);

/// The error of a file that cannot be read, as that of a damaged one. A lack of memory or
/// descriptors says nothing of the file and stays as it is.
runtime::Status as_damage(const runtime::Status& status);

}  // namespace rl
