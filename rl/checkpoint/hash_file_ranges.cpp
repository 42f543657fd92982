#include "rl/checkpoint/hash_file_ranges.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "rl/weights/page_cache.h"
#include "runtime/core/cpu_limit.h"
#include "runtime/core/thread.h"
#include "runtime/core/xxh3_hash.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

constexpr std::uint64_t kBlockBytes = 4 << 20;
constexpr std::uint64_t kPageBytes = 4096;  // what is read past the cache is of whole ones
// A disk with this many readers is busy.
constexpr std::size_t kReadersMin = 4;
constexpr std::size_t kReadersMax = 16;

class Fd {
 public:
  explicit Fd(const fs::path& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Status read_error(int error, const fs::path& path) {
  return runtime::errno_status(error, "reading " + path.string());
}

// The bytes from `offset` on, `bytes` of them where the file has them, which are whole pages.
Result<std::uint64_t> read_block(int fd, std::byte* into, std::uint64_t offset, std::uint64_t bytes,
                                 const fs::path& path) {
  for (;;) {
    const ssize_t count = ::pread(fd, into, bytes, static_cast<off_t>(offset));
    if (count >= 0) return static_cast<std::uint64_t>(count);
    const int error = errno;
    if (error == EINTR) continue;
    if (error == EINVAL && is_past_cache(fd) && set_past_cache(fd, false)) continue;
    return read_error(error, path);
  }
}

Result<std::string> hash_range(const fs::path& path, const FileRange& range, ReadHow how,
                               std::byte* block) {
  const Fd fd(path);
  if (fd.get() < 0) return read_error(errno, path);
  if (how == ReadHow::kPastPageCache) set_past_cache(fd.get(), true);
  runtime::Xxh3Hash hash;
  for (std::uint64_t at = range.begin; at < range.end;) {
    const std::uint64_t page = at / kPageBytes * kPageBytes;
    const std::uint64_t pages = (range.end - page + kPageBytes - 1) / kPageBytes;
    const std::uint64_t wanted = std::min(kBlockBytes, pages * kPageBytes);
    const Result<std::uint64_t> count = read_block(fd.get(), block, page, wanted, path);
    if (!count.ok()) return count.status();
    const std::uint64_t end = std::min(range.end, page + *count);
    if (end <= at) return runtime::unavailable(path.string() + ": it was cut while it was read");
    hash.add(block + (at - page), end - at);
    at = end;
  }
  return hash.hex();
}

}  // namespace

std::vector<Result<std::string>> hash_file_ranges(const std::vector<fs::path>& paths,
                                                  const std::vector<FileRange>& ranges,
                                                  ReadHow how) {
  std::vector<Result<std::string>> hashes(ranges.size(), Result<std::string>(std::string()));
  if (ranges.empty()) return hashes;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    const DirectBlock block = allocate_direct_block(kBlockBytes);
    for (std::size_t i = next++; i < ranges.size(); i = next++) {
      const fs::path& path = paths[ranges[i].file];
      if (block)
        hashes[i] = hash_range(path, ranges[i], how, block.get());
      else
        hashes[i] =
            runtime::resource_exhausted("reading " + path.string() + ": no memory for a block");
    }
  };
  const std::size_t readers =
      std::clamp(static_cast<std::size_t>(runtime::cpu_threads()), kReadersMin, kReadersMax);
  {
    const runtime::HelperThreads helpers(std::min(readers, ranges.size()) - 1, work);
    work();
  }
  return hashes;
}

Result<std::uint64_t> regular_file_bytes(const fs::path& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0) return read_error(errno, path);
  if (!S_ISREG(there.st_mode)) return runtime::invalid_argument(path.string() + ": not a file");
  return static_cast<std::uint64_t>(there.st_size);
}

Status sync_file(const fs::path& path) {
  const Fd fd(path);
  if (fd.get() < 0) return read_error(errno, path);
  return ::fsync(fd.get()) == 0 ? Status()
                                : runtime::errno_status(errno, "syncing " + path.string());
}

}  // namespace rl
