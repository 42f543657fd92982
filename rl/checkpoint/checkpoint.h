// Checkpoint folders: whole or not there, and known to be undamaged before they are used.
//
// A run's folder holds `global_step_N/`, one per checkpoint, and
// `latest_checkpointed_iteration.txt` with the newest N (verl's names). Inside global_step_N:
//   manifest.json         size and xxHash3-128 of every other file, or of its ranges (manifest.h)
//   trainer.json          step, data position, seed: what the controller needs
//   actor/huggingface/    the model as a Hugging Face folder
//   actor/optimizer.safetensors
// Invariant: a folder named global_step_N was complete when it got that name. Until then it is
// `.global_step_N.<id>.tmp/checkpoint` (hidden_folder.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

class HiddenFolder;

/// One checkpoint while it is written. Destroyed before commit(), it leaves nothing behind. One
/// thread at a time.
class CheckpointWriter {
 public:
  /// Makes the temporary folder below `root`, and `root` itself. Leftovers of writers that were
  /// killed are removed: what carries a mark of ours, and is locked by no process. Errors: as errno
  /// says, with the path.
  static runtime::Result<CheckpointWriter> begin(const std::filesystem::path& root,
                                                 std::int64_t step);
  CheckpointWriter(CheckpointWriter&&) noexcept;
  ~CheckpointWriter();

  /// Where to put the files; any process that sees this file system may write them.
  std::filesystem::path folder() const;

  /// Writes a small JSON file below folder().
  runtime::Status write_json(const std::filesystem::path& relative,
                             const nlohmann::ordered_json& json);

  /// Writes the manifest, syncs everything to the disk and renames the folder into place (replacing
  /// one of the same step in one move). Points `latest` to it. kNotFound: a file of `expected`,
  /// relative to folder(), is missing (written on a machine that does not share this file system,
  /// say). A failure leaves the older checkpoints and the pointer as they were. Returns the
  /// folder's final path. Cost: what no writer has left a note of (hash_note.h) is read once more.
  runtime::Result<std::filesystem::path> commit(const std::vector<std::filesystem::path>& expected);

 private:
  CheckpointWriter(std::filesystem::path root, std::unique_ptr<HiddenFolder> hidden,
                   std::int64_t step);

  std::filesystem::path root_;
  std::unique_ptr<HiddenFolder> hidden_;
  std::int64_t step_;
};

/// Reads every file of a checkpoint and compares it with the manifest. kInvalidArgument names the
/// file that is missing, of another size, or damaged; kResourceExhausted: no memory or descriptors
/// to find out.
runtime::Status verify_checkpoint(const std::filesystem::path& folder);

/// trainer.json, parsed. kInvalidArgument: not there or not JSON. kResourceExhausted: no
/// descriptors to read it.
runtime::Result<nlohmann::ordered_json> read_checkpoint_json(const std::filesystem::path& folder,
                                                             const std::filesystem::path& relative);

/// Checkpoints below `root` by step, newest first, whole or not.
std::vector<std::pair<std::int64_t, std::filesystem::path>> list_checkpoints(
    const std::filesystem::path& root);

/// The step that the pointer names; empty where there is none.
std::optional<std::int64_t> latest_checkpoint_step(const std::filesystem::path& root);

/// The newest checkpoint below `root` that verifies: the one that the pointer names, else the next
/// one below it, else one above. Damaged ones are passed over with a warning in the log. Empty when
/// there is none, and when `root` does not exist. kResourceExhausted: no memory or descriptors to
/// check one, which may be whole.
runtime::Result<std::optional<std::filesystem::path>> latest_whole_checkpoint(
    const std::filesystem::path& root);

/// Writes `best_checkpointed_iteration.txt`: the checkpoint of that step is better than the others.
/// Errors: as errno says.
runtime::Status mark_best_checkpoint(const std::filesystem::path& root, std::int64_t step);

/// The step that mark_best_checkpoint() wrote last; empty when it never did.
std::optional<std::int64_t> best_checkpoint_step(const std::filesystem::path& root);

/// Removes the oldest checkpoints until `keep` are left; `keep` < 1 keeps all. Never removes the
/// one that the pointer names, nor the best. What is above the pointer (of an earlier run in the
/// same folder) or has no manifest is neither counted nor removed.
runtime::Status prune_checkpoints(const std::filesystem::path& root, std::int64_t keep);

/// `root`/global_step_`step`: where a run has the checkpoint of that step, if it has it.
std::filesystem::path checkpoint_path(const std::filesystem::path& root, std::int64_t step);

/// "global_step_12" -> 12; empty for any other name.
std::optional<std::int64_t> checkpoint_step(const std::filesystem::path& folder);

}  // namespace rl
