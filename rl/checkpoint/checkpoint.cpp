#include "rl/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <functional>

#include "rl/checkpoint/hash_file_ranges.h"
#include "rl/checkpoint/hash_note.h"
#include "rl/checkpoint/hidden_folder.h"
#include "rl/checkpoint/manifest.h"
#include "rl/weights/atomic_file.h"
#include "rl/weights/weight_source.h"
#include "runtime/core/json.h"
#include "runtime/core/log.h"
#include "runtime/core/rest_of.h"
#include "runtime/core/sync_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kLatest = "latest_checkpointed_iteration.txt";
constexpr const char* kBestFile = "best_checkpointed_iteration.txt";
constexpr const char* kFolderPrefix = "global_step_";
constexpr std::uintmax_t kJsonBytesMax = 64 << 20;

// Several processes write weights. A file that was cut when its writers were through is found here,
// before the manifest says that it is right.
Status check_written(const fs::path& path) {
  return path.extension() == ".safetensors" ? open_safetensors(path).status() : Status();
}

Status sync_folder(const fs::path& path) {
  const std::error_code error = runtime::sync_folder(path);
  return error ? runtime::errno_status(error.value(), "syncing " + path.string()) : Status();
}

// Regular files below `folder`, relative and sorted; the notes among them, with their folder; and
// all folders, deepest first, `folder` last.
struct Tree {
  std::vector<fs::path> files;
  std::vector<fs::path> notes;
  std::vector<fs::path> folders;
};

Result<Tree> walk(const fs::path& folder) {
  Tree tree;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_directory()) tree.folders.insert(tree.folders.begin(), entry->path());
    if (!entry->is_regular_file()) continue;
    std::error_code ignored;
    // One named like a note of no file is a file as others are.
    if (is_hash_note(entry->path()) && fs::is_regular_file(file_of_note(entry->path()), ignored))
      tree.notes.push_back(entry->path());
    else
      tree.files.push_back(entry->path().lexically_relative(folder));
  }
  if (error) return runtime::errno_status(error.value(), "reading " + folder.string());
  tree.folders.push_back(folder);
  std::sort(tree.files.begin(), tree.files.end());
  return tree;
}

// By the notes of those that wrote them; what no note speaks of is read again.
Result<std::vector<HashedFile>> hash_files(const fs::path& folder,
                                           const std::vector<fs::path>& paths,
                                           const std::vector<fs::path>& notes) {
  const HashNotes written = HashNotes::take(notes);
  std::vector<HashedFile> files;
  for (const fs::path& path : paths) {
    const fs::path file = folder / path;
    if (const Status whole = check_written(file); !whole.ok()) return whole;
    const Result<std::uint64_t> bytes = regular_file_bytes(file);
    if (!bytes.ok()) return bytes.status();
    files.push_back({path, *bytes, written.ranges_of(file, *bytes)});
  }
  if (const Status hashed = complete_hashes(folder, files); !hashed.ok()) return hashed;
  return files;
}

// In one line: each range of each file is in it, and readers refuse one that is too long.
Status write_manifest(const fs::path& path, const Manifest& manifest) {
  const std::string text = manifest.to_json().dump() + "\n";
  if (text.size() <= kJsonBytesMax) return write_file_atomically(path, text);
  return runtime::resource_exhausted(
      path.string() + ": would have " + std::to_string(text.size()) + " bytes, above the " +
      std::to_string(kJsonBytesMax) + " that are read: the checkpoint has too many files (" +
      std::to_string(manifest.files.size()) + ") or ranges that writers hashed");
}

// `from` becomes `to`; when `to` exists the two change places in one move, so that there is never
// none.
Status move_into_place(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == EEXIST &&
      ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0)
    return {};
  if (errno != EINVAL && errno != ENOSYS)
    return runtime::errno_status(errno, "renaming " + from.string() + " to " + to.string());
  // A file system without the flags (NFS): the old one has to go first.
  std::error_code error;
  fs::remove_all(to, error);
  if (!error) fs::rename(from, to, error);
  return error ? runtime::errno_status(error.value(),
                                       "renaming " + from.string() + " to " + to.string())
               : Status();
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<std::int64_t> read_pointer(const fs::path& file) {
  std::ifstream in(file);
  std::string text;
  in >> text;
  return parse_number(text);
}

// Checkpoints below `root`, newest first. A folder that is not there has none.
Result<std::vector<std::pair<std::int64_t, fs::path>>> read_root(const fs::path& root) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code error;
  for (auto entry = fs::directory_iterator(root, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (const auto step = checkpoint_step(entry->path())) found.emplace_back(*step, entry->path());
  }
  const Status status =
      error ? runtime::errno_status(error.value(), "reading " + root.string()) : Status();
  if (status.code() == runtime::ErrorCode::kResourceExhausted) return status;
  std::sort(found.begin(), found.end(), std::greater<>());
  return found;
}

// What processes that have ended left half written.
void remove_leftovers(const fs::path& root) {
  remove_dead_hidden_folders(root);
  remove_dead_temporaries(root);
}

}  // namespace

CheckpointWriter::CheckpointWriter(fs::path root, std::unique_ptr<HiddenFolder> hidden,
                                   std::int64_t step)
    : root_(std::move(root)), hidden_(std::move(hidden)), step_(step) {}

CheckpointWriter::CheckpointWriter(CheckpointWriter&&) noexcept = default;

CheckpointWriter::~CheckpointWriter() = default;

fs::path CheckpointWriter::folder() const { return hidden_->content(); }

Result<CheckpointWriter> CheckpointWriter::begin(const fs::path& root, std::int64_t step) {
  std::error_code error;
  const fs::path absolute = fs::absolute(root, error);
  if (!error) fs::create_directories(absolute, error);
  if (error)
    return runtime::errno_status(error.value(), "making the checkpoint folder " + root.string());
  remove_leftovers(absolute);
  auto hidden = HiddenFolder::make(absolute, step);
  if (!hidden.ok()) return hidden.status();
  return CheckpointWriter(absolute, std::make_unique<HiddenFolder>(*std::move(hidden)), step);
}

Status CheckpointWriter::write_json(const fs::path& relative, const nlohmann::ordered_json& json) {
  std::error_code error;
  const fs::path path = folder() / relative;
  fs::create_directories(path.parent_path(), error);
  if (error) return runtime::errno_status(error.value(), "making " + path.parent_path().string());
  return write_file_atomically(path, json.dump(2) + "\n");
}

Result<fs::path> CheckpointWriter::commit(const std::vector<fs::path>& expected) {
  const Result<Tree> tree = walk(folder());
  if (!tree.ok()) return tree.status();
  for (const fs::path& path : expected) {
    if (std::binary_search(tree->files.begin(), tree->files.end(), path)) continue;
    return runtime::not_found(
        "checkpoint of step " + std::to_string(step_) + ": " + path.string() +
        " did not arrive in " + root_.string() +
        "; is trainer.default_local_dir on a file system that all nodes share?");
  }
  Result<std::vector<HashedFile>> files = hash_files(folder(), tree->files, tree->notes);
  if (!files.ok()) return files.status();
  Status status = write_manifest(folder() / kManifest, Manifest{step_, *std::move(files)});
  for (const fs::path& folder : tree->folders) {
    if (status.ok()) status = sync_folder(folder);
  }
  const fs::path final_path = checkpoint_path(root_, step_);
  if (status.ok()) status = move_into_place(folder(), final_path);
  if (status.ok()) status = sync_folder(root_);
  if (status.ok()) status = write_file_atomically(root_ / kLatest, std::to_string(step_));
  if (!status.ok()) return status;
  // After an exchange it holds the checkpoint that was replaced.
  hidden_->remove();
  return final_path;
}

Status verify_checkpoint(const fs::path& folder) {
  const Result<nlohmann::ordered_json> json = read_checkpoint_json(folder, kManifest);
  if (!json.ok()) return json.status();
  const Result<Manifest> manifest = Manifest::from_json(*json);
  if (!manifest.ok())
    return runtime::invalid_argument(folder.string() + ": " + manifest.status().message());
  const auto named = checkpoint_step(folder);
  if (named && manifest->step && *manifest->step != *named)
    return runtime::invalid_argument(folder.string() + ": it is of step " +
                                     std::to_string(*manifest->step) +
                                     ", as manifest.json says: give the folder its name back");
  return verify_files(folder, manifest->files);
}

Result<nlohmann::ordered_json> read_checkpoint_json(const fs::path& folder,
                                                    const fs::path& relative) {
  const fs::path path = folder / relative;
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error) return runtime::invalid_argument(path.string() + ": " + error.message());
  if (bytes > kJsonBytesMax)
    return runtime::invalid_argument(path.string() + ": " + std::to_string(bytes) +
                                     " bytes are too many");
  std::ifstream in(path, std::ios::binary);
  if (!in) return as_damage(runtime::errno_status(errno, path.string()));
  nlohmann::ordered_json json = runtime::parse_json<nlohmann::ordered_json>(runtime::rest_of(in));
  if (!json.is_object()) return runtime::invalid_argument(path.string() + ": not a JSON object");
  return json;
}

std::vector<std::pair<std::int64_t, fs::path>> list_checkpoints(const fs::path& root) {
  return read_root(root).value_or({});
}

std::optional<std::int64_t> latest_checkpoint_step(const fs::path& root) {
  return read_pointer(root / kLatest);
}

Result<std::optional<fs::path>> latest_whole_checkpoint(const fs::path& root) {
  auto candidates = read_root(root);
  if (!candidates.ok()) return candidates.status();
  if (const auto latest = latest_checkpoint_step(root)) {
    // Those above the pointer are the last choice. They were there when the run began again, or one
    // is whole and the run was killed before it was pointed to.
    std::stable_partition(candidates->begin(), candidates->end(),
                          [&](const auto& candidate) { return candidate.first <= *latest; });
  }
  for (const auto& [step, folder] : *candidates) {
    const Status status = verify_checkpoint(folder);
    if (status.ok()) return std::optional<fs::path>(folder);
    // It may be whole: an older one would lose the steps since.
    if (status.code() == runtime::ErrorCode::kResourceExhausted)
      return status.with_context("checking checkpoint " + folder.string());
    LOG(warn, "passing over checkpoint {}: {}", folder.string(), status.message());
  }
  return std::optional<fs::path>();
}

Status mark_best_checkpoint(const fs::path& root, std::int64_t step) {
  return write_file_atomically(root / kBestFile, std::to_string(step));
}

std::optional<std::int64_t> best_checkpoint_step(const fs::path& root) {
  return read_pointer(root / kBestFile);
}

Status prune_checkpoints(const fs::path& root, std::int64_t keep) {
  if (keep < 1) return {};
  const auto latest = latest_checkpoint_step(root);
  const auto best = best_checkpoint_step(root);
  std::int64_t kept = 0;
  for (const auto& [step, folder] : list_checkpoints(root)) {
    std::error_code ignored;
    // Another run's, or of no run: neither counted nor removed.
    if ((latest && step > *latest) || folder.filename() != checkpoint_path(root, step).filename() ||
        !fs::is_regular_file(folder / kManifest, ignored))
      continue;
    if (++kept <= keep || step == latest || step == best) continue;
    // Out of sight in one move first, so that half a checkpoint never has a checkpoint's name.
    const auto hidden = HiddenFolder::make(root, step);
    const fs::path doomed = hidden.ok() ? hidden->content() : hidden_name(root, step);
    std::error_code error;
    fs::rename(folder, doomed, error);
    if (!error) fs::remove_all(doomed, error);
    if (error) return runtime::errno_status(error.value(), "removing " + folder.string());
  }
  return {};
}

fs::path checkpoint_path(const fs::path& root, std::int64_t step) {
  return root / (kFolderPrefix + std::to_string(step));
}

std::optional<std::int64_t> checkpoint_step(const fs::path& folder) {
  const std::string name = folder.filename().string();
  if (!name.starts_with(kFolderPrefix)) return std::nullopt;
  return parse_number(std::string_view(name).substr(std::string_view(kFolderPrefix).size()));
}

}  // namespace rl
