#include "rl/checkpoint/shared_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "rl/checkpoint/hash_note.h"
#include "rl/weights/atomic_file.h"
#include "runtime/core/check.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// Smaller files are cheap either way.
constexpr std::uint64_t kPastCacheFrom = 4 * BlockWriter::kBlockBytes;

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
      hasher_(std::move(other.hasher_)),
      writer_(std::move(other.writer_)) {}

SharedFile::~SharedFile() {
  writer_.reset();
  if (fd_ >= 0) ::close(fd_);
  if (direct_fd_ >= 0) ::close(direct_fd_);
}

Result<SharedFile> SharedFile::open(const std::filesystem::path& path, std::uint64_t bytes,
                                    bool reserves) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return write_error(errno, path);
  SharedFile file(path, bytes, fd);
  if (const Status sized = make_size(fd, path, bytes, reserves); !sized.ok()) return sized;
  if (bytes >= kPastCacheFrom)
    file.direct_fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT);
  file.hasher_ = std::make_unique<RangeHasher>();
  file.writer_ = std::make_unique<BlockWriter>(
      BlockWriter::Target{path, fd, file.direct_fd_},
      [hasher = file.hasher_.get()](std::uint64_t offset, std::span<const std::byte> written) {
        hasher->add(offset, written);
      });
  return file;
}

Status SharedFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  CHECK(fd_ >= 0);
  CHECK(offset <= bytes_ && bytes.size() <= bytes_ - offset);
  return writer_->write(offset, bytes);
}

Status SharedFile::finish() {
  CHECK(fd_ >= 0);
  if (const Status written = writer_->finish(); !written.ok()) return written;
  if (::fsync(fd_) != 0) return write_error(errno, path_);
  struct stat there {};
  if (::fstat(fd_, &there) != 0) return write_error(errno, path_);
  if (there.st_size != static_cast<off_t>(bytes_)) {
    return runtime::unavailable(path_.string() + ": has " + std::to_string(there.st_size) +
                                " bytes instead of " + std::to_string(bytes_) +
                                ": it was cut while it was written");
  }
  // Without a note the file is read once more when the checkpoint is completed.
  if (const Status noted = write_hash_note(path_, {bytes_, hasher_->finish()}); !noted.ok())
    LOG(warn, "no note of the hashes of {}: {}", path_.string(), noted.message());
  return {};
}

}  // namespace rl
