#include "runtime/process/file_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "runtime/core/clock.h"
#include "runtime/core/disk_space.h"
#include "runtime/core/ids.h"
#include "runtime/core/log.h"
#include "runtime/process/cache_folder.h"
#include "runtime/process/file_lock.h"
#include "runtime/process/file_util.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr const char* kPart = ".part-";
constexpr std::size_t kPartDigits = 8;
constexpr std::size_t kContentDigits = 64;  // of a ContentHash
constexpr std::size_t kProgramDigits = 32;  // of an Xxh3Hash
constexpr std::uint64_t kCacheDiskParts = 2;
constexpr int kOthersDepth = 2;
// What was used less long ago may be about to be used by others. This counts where another cache
// has to give way, and on a file system without locks.
constexpr std::chrono::milliseconds kSurelyUnused = std::chrono::minutes(10);
constexpr int kBeginTries = 10;

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Without what part_of() adds.
std::string_view whole_name(std::string_view name) {
  const std::size_t part = name.rfind(kPart);
  if (part == std::string_view::npos) return name;
  const std::string_view id = name.substr(part + std::string_view(kPart).size());
  return id.size() == kPartDigits && is_hex(id) ? name.substr(0, part) : name;
}

bool is_part(const fs::path& file) {
  const std::string name = file.filename().string();
  return whole_name(name).size() != name.size();
}

/// The file, or the folder that has it, is named by a hash of its content.
bool is_named_by_hash(const fs::path& file, const fs::path& cache) {
  const fs::path inside = file.lexically_relative(cache);
  const std::string name = inside.empty() ? "" : inside.begin()->string();
  const std::string_view hash = whole_name(name);
  return is_hex(hash) && (hash.size() == kContentDigits || hash.size() == kProgramDigits);
}

/// The work failed because the disk, or the user's share of it, is full.
bool is_out_of_room(const Status& status) {
  if (status.code() != ErrorCode::kResourceExhausted) return false;
  // The code has it in common with a lack of memory or descriptors, which no room on a disk helps.
  for (int error : {ENOSPC, EDQUOT}) {
    if (status.message().find(std::generic_category().message(error)) != std::string::npos)
      return true;
  }
  return false;
}

/// What may be removed of a cache, as far as its names say: those used longest ago first.
std::vector<FolderFile> by_age(const fs::path& folder, int depth) {
  if (!check_cache_folder(folder).ok()) return {};
  std::vector<FolderFile> files = files_in(folder, depth);
  std::erase_if(files,
                [&](const FolderFile& file) { return !is_named_by_hash(file.path, folder); });
  std::sort(files.begin(), files.end(),
            [](const FolderFile& a, const FolderFile& b) { return a.used_ns < b.used_ns; });
  return files;
}

bool is_long_unused(const FolderFile& file) {
  const auto now = static_cast<std::int64_t>(unix_milliseconds());
  return file.used_ns < (now - kSurelyUnused.count()) * 1'000'000;
}

/// Unless a process uses it. Returns whether it is gone.
bool remove_unused(const FolderFile& file, const fs::path& cache) {
  const auto lock = FileLock::of_dead(file.path);
  const bool is_unused =
      lock.ok() ? lock->is_of(file.path)
                : lock.status().code() == ErrorCode::kInvalidArgument && is_long_unused(file);
  std::error_code error;
  if (!is_unused || !fs::remove(file.path, error)) return false;
  if (file.path.parent_path() != cache)
    fs::remove(file.path.parent_path(), error);  // succeeds only when it is empty
  return true;
}

/// Removes files until `bytes` are gone. Returns how many are.
std::uint64_t remove_bytes(const std::vector<FolderFile>& files, std::uint64_t bytes,
                           const fs::path& cache, const FileCache::Keeps& keeps) {
  std::uint64_t removed = 0;
  for (const FolderFile& file : files) {
    if (removed >= bytes) break;
    if (keeps && keeps(file.path)) continue;
    if (remove_unused(file, cache)) removed += file.bytes;
  }
  return removed;
}

}  // namespace

Status FileCache::make() const {
  return with_room(0, {}, [this] { return make_cache_folder(options_.folder); });
}

Status FileCache::check() const {
  const Status status = check_cache_folder(options_.folder);
  return status.code() == ErrorCode::kNotFound ? Status() : status;
}

fs::path FileCache::part_of(const fs::path& file) {
  fs::path part = file;
  return part += kPart + JobId::random().short_hex();
}

Result<FileDescriptor> FileCache::begin(const fs::path& part, unsigned mode,
                                        const Keeps& keeps) const {
  FileDescriptor file;
  const Status status = with_room(0, keeps, [&]() -> Status {
    for (int i = 0; i < kBeginTries; ++i) {
      file.reset(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
      if (!file) return errno_status(errno, "writing " + part.string());
      // Between its making and its lock another node may have taken it for a dead one's.
      struct stat info {};
      const bool is_taken = lock_open_file(file.get(), part).code() == ErrorCode::kUnavailable;
      if (!is_taken && ::fstat(file.get(), &info) == 0 && info.st_nlink > 0) return {};
      ::unlink(part.c_str());
    }
    return unavailable(part.string() + " is removed by another process as soon as it is made");
  });
  if (!status.ok()) return status;
  return file;
}

Status FileCache::write(int fd, std::string_view bytes, std::uint64_t bytes_to_come,
                        const fs::path& part, const Keeps& keeps) const {
  return with_room(bytes.size() + bytes_to_come, keeps, [&]() -> Status {
    while (!bytes.empty()) {
      const ssize_t put = ::write(fd, bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return errno_status(put < 0 ? errno : ENOSPC, "writing " + part.string());
      bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return {};
  });
}

Status FileCache::with_room(std::uint64_t bytes, const Keeps& keeps,
                            const std::function<Status()>& work) const {
  while (true) {
    Status status = work();
    if (!is_out_of_room(status)) return status;
    if (give_way(std::max<std::uint64_t>(bytes, 1), keeps) > 0) continue;
    return resource_exhausted(
        status.message() + "; the cache has no unused file left to remove: " + "make room at " +
        disk_text(options_.folder) + ", or set STARLING_CACHE to a folder on another disk");
  }
}

std::uint64_t FileCache::give_way(std::uint64_t bytes, const Keeps& keeps) const {
  std::uint64_t removed =
      remove_bytes(by_age(options_.folder, options_.depth), bytes, options_.folder, keeps);
  for (const fs::path& other : options_.others) {
    if (removed >= bytes) break;
    std::vector<FolderFile> files = by_age(other, kOthersDepth);
    std::erase_if(files, [](const FolderFile& file) { return !is_long_unused(file); });
    removed += remove_bytes(files, bytes - removed, other, {});
  }
  if (removed > 0)
    LOG(info, "removed {} bytes of the cache {}: its disk is full", removed,
        options_.folder.string());
  return removed;
}

void FileCache::trim(const Keeps& keeps) const {
  std::vector<FolderFile> files = by_age(options_.folder, options_.depth);
  std::erase_if(files, [&](const FolderFile& file) {
    return is_part(file.path) && remove_unused(file, options_.folder);
  });
  std::uint64_t total = 0;
  for (const FolderFile& file : files) total += file.bytes;
  const auto disk = disk_space(options_.folder);
  const std::uint64_t bytes_max =
      disk.ok() ? std::min(options_.bytes_max, share_of(*disk, total, kCacheDiskParts))
                : options_.bytes_max;
  if (total > bytes_max) remove_bytes(files, total - bytes_max, options_.folder, keeps);
}

}  // namespace runtime
