#include "runtime/head/journal_reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "runtime/core/disk_space.h"

namespace runtime {

namespace {

constexpr const char* kReserveFile = "reserve";
constexpr std::uint64_t kReserveDiskParts = 4;
constexpr std::uint64_t kBlockBytes = 4096;
// Given back at a time, besides what the write itself has: SQLite writes whole pages, to its log
// and from there to the database.
constexpr std::uint64_t kPieceBytes = 128 << 10;

}  // namespace

JournalReserve::JournalReserve(std::filesystem::path folder) : folder_(std::move(folder)) {
  file_.reset(
      ::open((folder_ / kReserveFile).c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct stat info {};
  if (file_ && ::fstat(file_.get(), &info) == 0) bytes_ = static_cast<std::uint64_t>(info.st_size);
}

bool JournalReserve::release(std::uint64_t bytes) {
  const std::uint64_t left = bytes_ - std::min(bytes_, 2 * bytes + kPieceBytes);
  if (bytes_ == 0 || ::ftruncate(file_.get(), static_cast<off_t>(left)) != 0) return false;
  bytes_ = left;
  return true;
}

bool JournalReserve::refill() {
  const auto disk = disk_space(folder_);
  if (!disk.ok() || !file_) return true;  // nothing is known of the disk, or it is no place for it
  const std::uint64_t share = std::min(kBytesMax, share_of(*disk, bytes_, kReserveDiskParts));
  const std::uint64_t wanted = share - share % kBlockBytes;
  if (bytes_ >= wanted) return disk->free_bytes >= wanted && wanted > 0;
  if (::posix_fallocate(file_.get(), 0, static_cast<off_t>(wanted)) == 0) {
    bytes_ = wanted;
    return true;
  }
  // A file system that cannot, or others were faster: what it has got so far is not kept.
  if (::ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0) return false;
  return disk->free_bytes >= wanted;
}

}  // namespace runtime
