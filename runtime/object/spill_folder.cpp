#include "runtime/object/spill_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/transport/file_descriptor.h"

namespace runtime::object_detail {

namespace {

namespace fs = std::filesystem;

constexpr const char* kSuffix = ".spill";

}  // namespace

Result<std::unique_ptr<SpillFolder>> SpillFolder::open(fs::path path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return unavailable("spill folder " + path.string() + ": " + error.message());
  if (::access(path.c_str(), W_OK | X_OK) != 0) return invalid_argument("spill folder " + path.string() + ": " + std::strerror(errno));
  std::unique_ptr<SpillFolder> folder(new SpillFolder(std::move(path)));
  folder->remove_all();
  return folder;
}

SpillFolder::~SpillFolder() {
  remove_all();
  std::error_code ignored;
  fs::remove(path_, ignored);
}

fs::path SpillFolder::file(std::uint64_t extent) const { return path_ / (std::to_string(extent) + kSuffix); }

void SpillFolder::remove_all() {
  std::error_code error;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().extension() == kSuffix) fs::remove(entry->path(), ignored);
  }
}

Status SpillFolder::write(std::uint64_t extent, std::span<const std::byte> bytes) {
  const fs::path name = file(extent);
  FileDescriptor fd(::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  int error = fd ? 0 : errno;
  // Asked for first, so that a disk with too little says so before any of it is used.
  if (fd && (error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes.size()))) == EOPNOTSUPP) error = 0;
  for (std::size_t done = 0; error == 0 && done < bytes.size();) {
    ssize_t wrote = ::pwrite(fd.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
    else if (wrote == 0) error = EIO;
    else if (errno != EINTR) error = errno;
  }
  if (error == 0) return {};
  remove(extent);
  return resource_exhausted("cannot spill " + std::to_string(bytes.size()) + " bytes to " + path_.string() + ": " + std::strerror(error));
}

Status SpillFolder::read(std::uint64_t extent, std::span<std::byte> out) {
  const fs::path name = file(extent);
  FileDescriptor fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  int error = fd ? 0 : errno;
  for (std::size_t done = 0; error == 0 && done < out.size();) {
    ssize_t got = ::pread(fd.get(), out.data() + done, out.size() - done, static_cast<off_t>(done));
    if (got > 0) done += static_cast<std::size_t>(got);
    else if (got == 0) return object_lost("its spilled bytes in " + name.string() + " end early");
    else if (errno != EINTR) error = errno;
  }
  if (error == 0) return {};
  return object_lost("its spilled bytes in " + name.string() + " cannot be read: " + std::strerror(error));
}

void SpillFolder::remove(std::uint64_t extent) { ::unlink(file(extent).c_str()); }

std::uint64_t SpillFolder::free_bytes() const {
  std::error_code error;
  auto space = fs::space(path_, error);
  return error ? 0 : space.available;
}

}  // namespace runtime::object_detail
