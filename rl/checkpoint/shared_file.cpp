#include "rl/checkpoint/shared_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/core/check.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr std::uint64_t kBlockBytes = 4 << 20;
constexpr std::uint64_t kPageBytes = 4096;  // what goes past the cache is of whole ones
constexpr std::uint64_t kPastCacheFrom = 4 * kBlockBytes;  // smaller files are cheap either way

Status write_error(int error, const std::filesystem::path& path) {
  return runtime::errno_status(error, path.string() + ": cannot be written");
}

std::uint64_t page_before(std::uint64_t offset) { return offset / kPageBytes * kPageBytes; }
std::uint64_t page_after(std::uint64_t offset) { return page_before(offset + kPageBytes - 1); }

// Another writer may do the same at the same time: both make it longer, to the same size.
Status make_size(int fd, const std::filesystem::path& path, std::uint64_t bytes, bool reserves) {
  struct stat there {};
  if (::fstat(fd, &there) != 0) return write_error(errno, path);
  if (there.st_size > static_cast<off_t>(bytes)) {
    return runtime::invalid_argument(path.string() + ": has " + std::to_string(there.st_size) +
                                     " bytes, which is more than the " + std::to_string(bytes) +
                                     " that are to be written: another program's file");
  }
  if (reserves && bytes > 0) {
    if (::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0) return {};
    if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) return write_error(errno, path);
  }
  if (there.st_size < static_cast<off_t>(bytes) && ::ftruncate(fd, static_cast<off_t>(bytes)) != 0)
    return write_error(errno, path);
  return {};
}

}  // namespace

SharedFile::SharedFile(std::filesystem::path path, std::uint64_t bytes, int fd)
    : path_(std::move(path)), bytes_(bytes), fd_(fd) {}

SharedFile::SharedFile(SharedFile&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(other.bytes_),
      fd_(std::exchange(other.fd_, -1)),
      direct_fd_(std::exchange(other.direct_fd_, -1)),
      block_(std::move(other.block_)),
      from_(other.from_),
      to_(std::exchange(other.to_, other.from_)) {}

SharedFile::~SharedFile() {
  if (fd_ >= 0) ::close(fd_);
  if (direct_fd_ >= 0) ::close(direct_fd_);
}

Result<SharedFile> SharedFile::open(const std::filesystem::path& path, std::uint64_t bytes,
                                    bool reserves) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return write_error(errno, path);
  SharedFile file(path, bytes, fd);
  if (const Status sized = make_size(fd, path, bytes, reserves); !sized.ok()) return sized;
  file.block_ = allocate_direct_block(kBlockBytes);
  if (!file.block_)
    return runtime::resource_exhausted(path.string() + ": no memory for a block to write");
  if (bytes >= kPastCacheFrom)
    file.direct_fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT);
  return file;
}

Status SharedFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  CHECK(fd_ >= 0);
  CHECK(offset <= bytes_ && bytes.size() <= bytes_ - offset);
  while (!bytes.empty()) {
    const bool follows = offset == to_ && to_ % kBlockBytes != 0;
    if (!follows) {
      if (const Status flushed = flush_block(); !flushed.ok()) return flushed;
      from_ = to_ = offset;
    }
    const std::uint64_t at = offset % kBlockBytes;
    const std::size_t taken = std::min<std::size_t>(bytes.size(), kBlockBytes - at);
    std::memcpy(block_.get() + at, bytes.data(), taken);
    bytes = bytes.subspan(taken);
    offset += taken;
    to_ = offset;
  }
  return {};
}

// Others write the rest of the first and of the last page, so that these go through the cache.
Status SharedFile::flush_block() {
  const std::uint64_t from = std::exchange(from_, to_), to = to_;
  const std::uint64_t pages_from = page_after(from), pages_to = page_before(to);
  if (direct_fd_ < 0 || pages_from >= pages_to) return write_out(fd_, from, to);
  Status status = write_out(fd_, from, pages_from);
  if (status.ok()) status = write_out(direct_fd_, pages_from, pages_to);
  return status.ok() ? write_out(fd_, pages_to, to) : status;
}

Status SharedFile::write_out(int fd, std::uint64_t begin, std::uint64_t end) {
  if (begin == end) return {};
  const std::uint64_t block = begin / kBlockBytes * kBlockBytes;
  while (begin < end) {
    const ssize_t written =
        ::pwrite(fd, block_.get() + (begin - block), end - begin, static_cast<off_t>(begin));
    if (written >= 0) {
      begin += static_cast<std::uint64_t>(written);
      // What follows a write that was cut short begins anywhere.
      if (begin % kPageBytes != 0) fd = fd_;
    } else if (const int error = errno; error == EINVAL && fd == direct_fd_) {
      // Some file systems take the flag and refuse the write.
      fd = fd_;
      ::close(std::exchange(direct_fd_, -1));
    } else if (error != EINTR) {
      return write_error(error, path_);
    }
  }
  return {};
}

Status SharedFile::finish() {
  CHECK(fd_ >= 0);
  if (const Status flushed = flush_block(); !flushed.ok()) return flushed;
  if (::fsync(fd_) != 0) return write_error(errno, path_);
  struct stat there {};
  if (::fstat(fd_, &there) != 0) return write_error(errno, path_);
  if (there.st_size != static_cast<off_t>(bytes_)) {
    return runtime::unavailable(path_.string() + ": has " + std::to_string(there.st_size) +
                                " bytes instead of " + std::to_string(bytes_) +
                                ": it was cut while it was written");
  }
  return {};
}

}  // namespace rl
