#include "rl/hub/partial_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

namespace rl {

using runtime::Result;
using runtime::Status;

PartialFile::PartialFile(std::filesystem::path path, int fd, std::uint64_t bytes_max)
    : path_(std::move(path)), fd_(fd), bytes_max_(bytes_max) {
  crypto_hash_sha256_init(&hash_);
}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      bytes_max_(other.bytes_max_),
      bytes_(other.bytes_),
      hash_(other.hash_) {}

PartialFile::~PartialFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<PartialFile> PartialFile::open(const std::filesystem::path& path, std::uint64_t bytes_max) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return runtime::errno_status(errno, path.string());
  PartialFile file(path, fd, bytes_max);
  std::vector<unsigned char> buffer(1 << 20);
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return runtime::errno_status(errno, path.string());
    if (got == 0) break;
    crypto_hash_sha256_update(&file.hash_, buffer.data(), static_cast<unsigned long long>(got));
    file.bytes_ += static_cast<std::uint64_t>(got);
    if (file.bytes_ <= bytes_max) continue;
    if (Status status = file.restart(); !status.ok()) return status;
    break;
  }
  return file;
}

Status PartialFile::append(std::span<const std::byte> bytes) {
  if (bytes.size() > bytes_max_ - bytes_) {
    return runtime::invalid_argument(path_.string() + ": the hub sends more than the " +
                                     std::to_string(bytes_max_) + " bytes that it announced");
  }
  for (std::span<const std::byte> rest = bytes; !rest.empty();) {
    const ssize_t put = ::write(fd_, rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const int error = errno;
      if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
        return runtime::resource_exhausted(path_.string() + ": no room for a file of " +
                                           std::to_string(bytes_max_) +
                                           " bytes; make room or set HF_HOME to a larger disk, and "
                                           "the download continues where it stopped");
      }
      return runtime::errno_status(error, path_.string());
    }
    crypto_hash_sha256_update(&hash_, reinterpret_cast<const unsigned char*>(rest.data()),
                              static_cast<unsigned long long>(put));
    bytes_ += static_cast<std::uint64_t>(put);
    rest = rest.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

Status PartialFile::restart() {
  if (::ftruncate(fd_, 0) != 0 || ::lseek(fd_, 0, SEEK_SET) < 0)
    return runtime::errno_status(errno, path_.string());
  bytes_ = 0;
  crypto_hash_sha256_init(&hash_);
  return {};
}

std::string PartialFile::sha256() {
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest{};
  crypto_hash_sha256_final(&hash_, digest.data());
  std::string text(digest.size() * 2 + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), digest.data(), digest.size());
  text.pop_back();
  return text;
}

Status PartialFile::finish(const std::filesystem::path& path) {
  if (::fdatasync(fd_) != 0) return runtime::errno_status(errno, path_.string());
  if (std::rename(path_.c_str(), path.c_str()) != 0)
    return runtime::errno_status(errno, "renaming to " + path.string());
  return {};
}

}  // namespace rl
