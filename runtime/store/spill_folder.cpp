#include "runtime/store/spill_folder.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/core/disk_space.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime::object_detail {

namespace {

namespace fs = std::filesystem;

constexpr const char* kSpillSuffix = ".spill";
constexpr const char* kKeptFree =
    " but an eighth of it, at most 64 MiB, which is kept for the journal; make room there, or name "
    "another --spill-dir";

/// Behind the bytes: tells a file that is damaged, or another extent's, from a good one.
struct Trailer {
  static constexpr std::uint64_t kMagic = 0x314c505352545331;  // "1STRSPL1"
  std::uint64_t magic = kMagic;
  std::uint64_t extent = 0;
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;
  bool operator==(const Trailer&) const = default;
};

Trailer trailer_of(std::uint64_t extent, std::span<const std::byte> bytes) {
  return {Trailer::kMagic, extent, bytes.size(), XXH3_64bits(bytes.data(), bytes.size())};
}

/// 0, or the error number.
int write_at(int fd, std::span<const std::byte> bytes, std::size_t offset) {
  for (std::size_t done = 0; done < bytes.size();) {
    ssize_t wrote =
        ::pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (wrote > 0)
      done += static_cast<std::size_t>(wrote);
    else if (wrote == 0)
      return EIO;
    else if (errno != EINTR)
      return errno;
  }
  return 0;
}

/// 0, or the error number; -1 when the file ends before.
int read_at(int fd, std::span<std::byte> out, std::size_t offset) {
  for (std::size_t done = 0; done < out.size();) {
    ssize_t got =
        ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got > 0)
      done += static_cast<std::size_t>(got);
    else if (got == 0)
      return -1;
    else if (errno != EINTR)
      return errno;
  }
  return 0;
}

}  // namespace

Result<std::unique_ptr<SpillFolder>> SpillFolder::open(fs::path path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return unavailable("spill folder " + path.string() + ": " + error.message());
  fs::permissions(
      path, fs::perms::owner_all,
      error);  // it may lie in a folder of all users; whether it can be used is asked next
  if (::access(path.c_str(), W_OK | X_OK) != 0)
    return invalid_argument("spill folder " + path.string() + ": " + std::strerror(errno));
  std::unique_ptr<SpillFolder> folder(new SpillFolder(std::move(path)));
  folder->remove_all();
  return folder;
}

SpillFolder::~SpillFolder() {
  remove_all();
  std::error_code ignored;
  fs::remove(path_, ignored);
}

fs::path SpillFolder::file(std::uint64_t extent) const {
  return path_ / (std::to_string(extent) + kSpillSuffix);
}

void SpillFolder::remove_all() {
  std::error_code error;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().extension() == kSpillSuffix) fs::remove(entry->path(), ignored);
  }
}

Status SpillFolder::write(std::uint64_t extent, std::span<const std::byte> bytes) {
  const fs::path name = file(extent);
  FileDescriptor fd(::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  int error = fd ? std::exchange(next_error_, 0) : errno;
  if (error == 0 && !has_room(bytes.size() + sizeof(Trailer))) error = ENOSPC;
  // Asked for first, so that a disk with too little says so before any of it is used.
  if (error == 0 &&
      (error = ::posix_fallocate(fd.get(), 0,
                                 static_cast<off_t>(bytes.size() + sizeof(Trailer)))) == EOPNOTSUPP)
    error = 0;
  if (error == 0) error = write_at(fd.get(), bytes, 0);
  const Trailer trailer = trailer_of(extent, bytes);
  if (error == 0) error = write_at(fd.get(), std::as_bytes(std::span(&trailer, 1)), bytes.size());
  if (error == 0) return {};
  remove(extent);
  return resource_exhausted("cannot spill " + std::to_string(bytes.size()) + " bytes to " +
                            path_.string() + ": " + std::strerror(error) +
                            (error == ENOSPC ? kKeptFree : ""));
}

Status SpillFolder::read(std::uint64_t extent, std::span<std::byte> out) {
  const fs::path name = file(extent);
  FileDescriptor fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  int error = fd ? std::exchange(next_error_, 0) : errno;
  Trailer trailer;
  if (error == 0) error = read_at(fd.get(), out, 0);
  if (error == 0)
    error = read_at(fd.get(), std::as_writable_bytes(std::span(&trailer, 1)), out.size());
  if (error < 0) return object_lost("its spilled bytes in " + name.string() + " end early");
  if (error > 0)
    return object_lost("its spilled bytes in " + name.string() +
                       " cannot be read: " + std::strerror(error));
  if (trailer != trailer_of(extent, out))
    return object_lost("its spilled bytes in " + name.string() +
                       " are damaged: their hash is not what was written");
  return {};
}

void SpillFolder::remove(std::uint64_t extent) { ::unlink(file(extent).c_str()); }

std::uint64_t SpillFolder::free_bytes() const {
  const auto disk = disk_space(path_);
  return disk.ok() ? disk->free_bytes : 0;
}

bool SpillFolder::has_room(std::uint64_t bytes) const {
  const auto disk = disk_space(path_);
  return !disk.ok() || bytes + kept_free_bytes(*disk) <= disk->free_bytes;
}

}  // namespace runtime::object_detail
