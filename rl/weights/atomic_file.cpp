#include "rl/weights/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>
#include <utility>

#include "runtime/core/check.h"
#include "runtime/core/ids.h"
#include "runtime/core/sync_folder.h"
#include "runtime/process/file_lock.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

// Smaller files are cheap either way.
constexpr std::uint64_t kPastCacheFrom = 4 * BlockWriter::kBlockBytes;

// A temporary file is "metrics.csv.starling-tmp-1a2b3c4d".
constexpr std::string_view kTemporary = ".starling-tmp-";
constexpr std::size_t kTemporaryDigits = 8;

bool is_temporary_name(std::string_view name) {
  const std::size_t mark = name.rfind(kTemporary);
  if (mark == std::string_view::npos || mark == 0) return false;
  const std::string_view id = name.substr(mark + kTemporary.size());
  return id.size() == kTemporaryDigits &&
         id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// False where another process took it for a dead one's, between its making and its lock. A file
// system without locks has none.
bool lock_temporary(int fd) {
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  struct stat info {};
  return ::fstat(fd, &info) != 0 || info.st_nlink > 0;
}

// The file that a name stands for: a link is not to be replaced, but what it points to, which need
// not be there yet.
std::filesystem::path behind_links(std::filesystem::path path) {
  std::error_code error;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(path, error); ++links) {
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / target;  // as it is where it is absolute
  }
  return path;
}

bool is_special(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
         !std::filesystem::is_directory(status);
}

// Linux writes at most 2 GiB at a time.
Status write_all(int fd, std::span<const std::byte> bytes, const std::filesystem::path& path) {
  constexpr std::size_t kChunkBytes = 1 << 30;
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), std::min(bytes.size(), kChunkBytes));
    if (written >= 0)
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    else if (const int error = errno; error != EINTR)
      return write_error(error, path);
  }
  return {};
}

// A device or a pipe takes the bytes as they come.
Status write_through(const std::filesystem::path& path, std::string_view text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return write_error(errno, path);
  const Status status = write_all(fd, std::as_bytes(std::span(text)), path);
  ::close(fd);
  return status;
}

}  // namespace

Status write_error(int error, const std::filesystem::path& path) {
  return runtime::errno_status(error, path.string() + ": cannot be written");
}

AtomicFile::AtomicFile(std::filesystem::path path, std::filesystem::path temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)),
      direct_fd_(std::exchange(other.direct_fd_, -1)),
      bytes_(other.bytes_),
      blocks_(std::move(other.blocks_)) {}

AtomicFile::~AtomicFile() {
  blocks_.reset();
  if (direct_fd_ >= 0) ::close(direct_fd_);
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<AtomicFile> AtomicFile::create(const std::filesystem::path& given,
                                      std::uint64_t bytes_expected) {
  const std::filesystem::path path = behind_links(given);
  if (is_special(path))
    return runtime::invalid_argument(given.string() +
                                     ": a device or a pipe is there: name a regular file");
  // O_EXCL rather than mkostemp, which makes files that only their owner can read.
  std::string temporary;
  int fd = -1;
  for (bool is_ours = false; !is_ours;) {
    temporary = path.string();
    temporary.append(kTemporary).append(runtime::JobId::random().short_hex());
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) return write_error(errno, path);
    is_ours = fd >= 0 && lock_temporary(fd);
    if (fd >= 0 && !is_ours) ::close(fd);
  }
  AtomicFile file(path, temporary, fd);
  if (bytes_expected > 0 && ::fallocate(fd, 0, 0, static_cast<off_t>(bytes_expected)) != 0) {
    // A file system without fallocate finds out while writing.
    if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) return write_error(errno, path);
  }
  if (bytes_expected >= kPastCacheFrom)
    file.direct_fd_ = ::open(temporary.c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT);
  if (file.direct_fd_ >= 0)
    file.blocks_ = std::make_unique<BlockWriter>(BlockWriter::Target{path, fd, file.direct_fd_});
  return file;
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  CHECK(fd_ >= 0);
  const std::uint64_t at = std::exchange(bytes_, bytes_ + bytes.size());
  return blocks_ ? blocks_->write(at, bytes) : write_all(fd_, bytes, path_);
}

Status AtomicFile::commit() {
  CHECK(fd_ >= 0);
  if (blocks_) {
    if (Status status = blocks_->finish(); !status.ok()) return status;
  }
  if (::fsync(fd_) != 0) return write_error(errno, path_);
  // Locked until it has its name. What closing could tell, syncing has told.
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return write_error(errno, path_);
  temporary_.clear();
  ::close(std::exchange(fd_, -1));
  // A folder that cannot be read cannot be synced either; the file itself is safe.
  (void)runtime::sync_folder(path_.has_parent_path() ? path_.parent_path() : ".");
  return {};
}

void remove_dead_temporaries(const std::filesystem::path& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::filesystem::path& file = entry->path();
    if (!is_temporary_name(file.filename().string())) continue;
    const auto dead = runtime::FileLock::of_dead(file);
    if (dead.ok() && dead->is_of(file)) ::unlink(file.c_str());
  }
}

Status write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  if (is_special(path)) return write_through(path, text);
  auto file = AtomicFile::create(path, text.size());
  if (!file.ok()) return file.status();
  Status status = file->write(text);
  return status.ok() ? file->commit() : status;
}

}  // namespace rl
