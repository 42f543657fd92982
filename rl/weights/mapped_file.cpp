#include "rl/weights/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "rl/weights/page_cache.h"
#include "runtime/core/check.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

// Whether the page cache has all of a mapped view. (A read with RWF_NOWAIT would tell as well, but
// begins to fill the cache.)
bool is_cached(std::span<const std::byte> view) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t before = reinterpret_cast<std::uintptr_t>(view.data()) % page;
  std::vector<unsigned char> resident((before + view.size() + page - 1) / page);
  auto* const begin = const_cast<std::byte*>(view.data() - before);
  return ::mincore(begin, before + view.size(), resident.data()) == 0 &&
         std::ranges::all_of(resident, [](unsigned char is) { return (is & 1) != 0; });
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe by mistake must be an error, not a wait.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return runtime::errno_status(errno, path.string());
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    int error = errno;
    ::close(fd);
    return runtime::errno_status(error, path.string());
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return runtime::invalid_argument(path.string() + ": not a regular file");
  }
  auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) {  // mmap refuses a length of 0
    ::close(fd);
    return MappedFile();
  }
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (address == MAP_FAILED) {
    int error = errno;
    ::close(fd);
    return runtime::errno_status(error, path.string() + ": cannot be mapped");
  }
  return MappedFile(path, {static_cast<const std::byte*>(address), size}, fd);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::exchange(other.bytes_, {})),
      fd_(std::exchange(other.fd_, -1)),
      direct_fd_(std::exchange(other.direct_fd_, -1)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  std::swap(fd_, other.fd_);
  std::swap(direct_fd_, other.direct_fd_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  if (fd_ >= 0) ::close(fd_);
  if (direct_fd_ >= 0) ::close(direct_fd_);
}

bool MappedFile::contains(std::span<const std::byte> view) const {
  const std::less_equal<> before;
  return before(bytes_.data(), view.data()) &&
         before(view.data() + view.size(), bytes_.data() + bytes_.size());
}

void MappedFile::read_past_cache(const std::filesystem::path& path) {
  if (fd_ < 0 || direct_fd_ >= 0) return;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  struct stat mapped {
  }, opened{};
  const bool is_same = fd >= 0 && ::fstat(fd_, &mapped) == 0 && ::fstat(fd, &opened) == 0 &&
                       mapped.st_dev == opened.st_dev && mapped.st_ino == opened.st_ino;
  if (is_same)
    direct_fd_ = fd;
  else if (fd >= 0)
    ::close(fd);
}

Status MappedFile::read(std::span<const std::byte> view, std::span<std::byte> into) const {
  CHECK(contains(view));
  CHECK(view.size() == into.size());
  const auto offset = static_cast<off_t>(view.data() - bytes_.data());
  if (direct_fd_ < 0) return read_cached(offset, into);
  return is_cached(view) ? read_cached(offset, into) : read_directly(offset, into);
}

// By way of a block, since neither place nor memory begins with a page.
Status MappedFile::read_directly(off_t offset, std::span<std::byte> into) const {
  constexpr std::size_t kBlockBytes = 2 << 20;
  constexpr off_t kPageBytes = 4096;
  thread_local const DirectBlock block = allocate_direct_block(kBlockBytes);  // in warm memory
  while (block && !into.empty()) {
    const off_t page = offset / kPageBytes * kPageBytes;
    const auto before = static_cast<std::size_t>(offset - page);
    const std::size_t pages = (before + into.size() + kPageBytes - 1) / kPageBytes * kPageBytes;
    const ssize_t count = ::pread(direct_fd_, block.get(), std::min(pages, kBlockBytes), page);
    // What the file system refuses, and how a file ends, is the other way's to tell.
    if (count <= static_cast<ssize_t>(before)) break;
    const std::size_t taken = std::min(static_cast<std::size_t>(count) - before, into.size());
    std::memcpy(into.data(), block.get() + before, taken);
    into = into.subspan(taken);
    offset += static_cast<off_t>(taken);
  }
  return read_cached(offset, into);
}

Status MappedFile::read_cached(off_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t count = ::pread(fd_, into.data(), into.size(), offset);
    if (count > 0) {
      into = into.subspan(static_cast<std::size_t>(count));
      offset += count;
    } else if (count == 0) {
      return runtime::unavailable(path_.string() + ": it was cut while it was read");
    } else if (const int error = errno; error != EINTR) {
      return runtime::errno_status(error, "reading " + path_.string());
    }
  }
  return {};
}

}  // namespace rl
