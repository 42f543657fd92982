#include "runtime/core/disk_space.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kKeptFreeParts = 8;
constexpr std::uint64_t kKeptFreeBytesMax = 64ull << 20;

/// The path, or the nearest folder above it that is there.
fs::path nearest_folder(const fs::path& path) {
  std::error_code error;
  fs::path found = fs::absolute(path, error);
  while (!fs::exists(found, error) && found.has_relative_path()) found = found.parent_path();
  return found;
}

/// The uppermost folder of the path's disk.
fs::path mount_point(fs::path folder) {
  struct stat here {};
  struct stat above {};
  if (::stat(folder.c_str(), &here) != 0) return folder;
  while (folder.has_relative_path() && ::stat(folder.parent_path().c_str(), &above) == 0 &&
         above.st_dev == here.st_dev)
    folder = folder.parent_path();
  return folder;
}

}  // namespace

Result<DiskSpace> disk_space(const fs::path& path) {
  struct statvfs info {};
  while (::statvfs(path.c_str(), &info) != 0) {
    if (errno == EINTR) continue;
    if (errno != ENOENT || ::statvfs(nearest_folder(path).c_str(), &info) != 0)
      return errno_status(errno, "the disk of " + path.string());
    break;
  }
  return DiskSpace{std::uint64_t{info.f_blocks} * info.f_frsize,
                   std::uint64_t{info.f_bavail} * info.f_frsize};
}

std::uint64_t kept_free_bytes(const DiskSpace& disk) {
  return std::min(disk.bytes / kKeptFreeParts, kKeptFreeBytesMax);
}

std::uint64_t share_of(const DiskSpace& disk, std::uint64_t taken_bytes, std::uint64_t parts) {
  return (disk.free_bytes + taken_bytes) / parts;
}

std::string disk_text(const fs::path& folder) {
  const auto disk = disk_space(folder);
  if (!disk.ok()) return folder.string();
  return folder.string() + " (disk at " + mount_point(nearest_folder(folder)).string() + ": " +
         std::to_string(disk->bytes) + " bytes, " + std::to_string(disk->free_bytes) + " free)";
}

}  // namespace runtime
