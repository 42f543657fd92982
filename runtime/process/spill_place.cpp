#include "runtime/process/spill_place.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "runtime/core/log.h"
#include "runtime/process/private_folder.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSpillPrefix = "spill-";
constexpr const char* kSpillLock = "lock";
constexpr const char* kSpilled = ".spill";  // an object's file (runtime/store/spill_folder.cpp)
// Each time another node took the new folder for a dead one, before its lock was there.
constexpr int kLockTries = 100;

bool is_spill_name(const std::string& name) {
  const std::string prefix = kSpillPrefix;
  return name.starts_with(prefix) && NodeId::from_hex(name.substr(prefix.size())).ok();
}

/// With the lock held. Returns how many bytes that made free.
std::uint64_t remove_spilled(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (at->path().extension() != kSpilled || !at->is_regular_file(gone)) continue;
    const std::uint64_t size = at->file_size(gone);
    if (fs::remove(at->path(), gone)) bytes += size;
  }
  fs::remove(folder / kSpillLock, error);
  fs::remove(folder, error);  // succeeds only when it is empty
  return bytes;
}

/// The owner of a folder can move away what is in it, whatever its mode.
Status check_owner(const fs::path& folder) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) return errno_status(errno, folder.string());
  if (info.st_uid == ::geteuid() || info.st_uid == 0) return {};
  return invalid_argument(folder.string() + " belongs to user " + std::to_string(info.st_uid) +
                          ", who could take away what is spilled there: name your own folder "
                          "(a new one inside it will do), or one of root's");
}

}  // namespace

Result<std::unique_ptr<SpillPlace>> SpillPlace::create(const fs::path& parent, NodeId node) {
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return errno_status(error.value(), "making spill folder " + parent.string());
  if (Status status = check_owner(parent); !status.ok()) return status.with_context("spill folder");
  remove_dead_spills(parent);
  std::unique_ptr<SpillPlace> place(new SpillPlace(parent / (kSpillPrefix + node.hex())));
  if (Status status = place->lock(); !status.ok()) return status.with_context("spill folder");
  return place;
}

Status SpillPlace::lock() {
  for (int i = 0; i < kLockTries; ++i) {
    if (Status status = make_private_folder(path_); !status.ok()) return status;
    auto held = FileLock::of_file(path_ / kSpillLock);
    if (!held.ok() && held.status().code() == ErrorCode::kNotFound) continue;
    if (!held.ok()) return held.status();
    lock_ = *std::move(held);
    if (lock_.is_of(path_ / kSpillLock)) return {};
  }
  return unavailable(path_.string() + " is removed by another process as soon as it is made");
}

Status SpillPlace::refresh() {
  return lock_.is_of(path_ / kSpillLock) ? Status() : lock().with_context("spill folder");
}

SpillPlace::~SpillPlace() {
  if (lock_.is_of(path_ / kSpillLock)) remove_spilled(path_);
}

void remove_dead_spills(const fs::path& parent) {
  std::error_code error;
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
    const fs::path& folder = at->path();
    if (!is_spill_name(folder.filename().string()) || !check_private_folder(folder).ok()) continue;
    // Held, so that no process takes it for living now.
    const auto dead = FileLock::of_dead(folder / kSpillLock);
    if (!dead.ok() || !dead->is_of(folder / kSpillLock)) continue;
    const std::uint64_t bytes = remove_spilled(folder);
    if (bytes == 0) continue;
    LOG(info, "removed {} bytes that a dead node had spilled to {}", bytes, folder.string());
  }
}

}  // namespace runtime
