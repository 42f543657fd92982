#include "runtime/store/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/core/check.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14; older kernels say EINVAL
#endif

namespace runtime {

namespace {

constexpr std::uint64_t kPagePresent = 1ull << 63;  // in an entry of /proc/self/pagemap
// Pages are given back to the system in ranges of megabytes, so that one page of each tells about
// the others.
constexpr std::uint64_t kSampleBytes = 1 << 20;

std::byte* map_whole(int fd, std::uint64_t bytes, int protection) {
  void* base = ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) return nullptr;
  // A core dump of a crashed worker is about the worker, not about gigabytes of shared tensors.
  ::madvise(base, bytes, MADV_DONTDUMP);
  return static_cast<std::byte*>(base);
}

}  // namespace

Result<std::unique_ptr<Segment>> Segment::create(std::uint64_t bytes) {
  FileDescriptor fd(::memfd_create("starling-objects", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return errno_status(errno, "object store: memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return errno_status(
        errno, "object store: cannot size the segment to " + std::to_string(bytes) + " bytes");
  }
  // No holder of the descriptor can cut the file short under the others.
  ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return map(std::move(fd), bytes);
}

Result<std::unique_ptr<Segment>> Segment::map(FileDescriptor fd, std::uint64_t bytes) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return errno_status(errno, "object store: segment");
  if (bytes == 0 || static_cast<std::uint64_t>(info.st_size) != bytes) {
    return invalid_argument("object store: the segment has " + std::to_string(info.st_size) +
                            " bytes instead of " + std::to_string(bytes));
  }
  std::byte* writable = map_whole(fd.get(), bytes, PROT_READ | PROT_WRITE);
  std::byte* readable = writable ? map_whole(fd.get(), bytes, PROT_READ) : nullptr;
  if (readable == nullptr) {
    int error = errno;
    if (writable) ::munmap(writable, bytes);
    return errno_status(
        error, "object store: cannot map the segment of " + std::to_string(bytes) + " bytes");
  }
  return std::unique_ptr<Segment>(new Segment(std::move(fd), bytes, writable, readable));
}

Segment::~Segment() {
  ::munmap(writable_, bytes_);
  ::munmap(const_cast<std::byte*>(readable_), bytes_);
}

Result<FileDescriptor> Segment::duplicate() const {
  FileDescriptor copy(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return errno_status(errno, "object store: segment");
  return copy;
}

void Segment::discard(std::uint64_t begin, std::uint64_t size) {
  ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
              static_cast<off_t>(size));
}

Status Segment::populate(std::uint64_t begin, std::uint64_t size) {
  if (::madvise(writable_ + begin, size, MADV_POPULATE_WRITE) == 0 || errno == EINVAL ||
      errno == EINTR)
    return {};
  return resource_exhausted("object store: no memory for " + std::to_string(size) +
                            " more bytes: " + std::strerror(errno));
}

FileDescriptor Segment::open_pagemap() {
  return FileDescriptor(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
}

bool Segment::is_populated(std::uint64_t begin, std::uint64_t size) const {
  if (!pagemap_ || size == 0) return false;
  const auto base = reinterpret_cast<std::uintptr_t>(writable_);
  auto present = [&](std::uint64_t offset) {
    std::uint64_t entry = 0;
    const auto at = static_cast<off_t>((base + offset) / kPageBytes * sizeof entry);
    return ::pread(pagemap_.get(), &entry, sizeof entry, at) == sizeof entry &&
           (entry & kPagePresent) != 0;
  };
  for (std::uint64_t offset = begin; offset < begin + size; offset += kSampleBytes) {
    if (!present(offset)) return false;
  }
  return present(begin + size - 1);
}

Result<std::span<const std::byte>> Segment::find(const ObjectLocation& location,
                                                 std::uint64_t begin, std::uint64_t end) const {
  CHECK(begin <= end && end <= bytes_);
  if (location.offset % kObjectAlignment != 0 || location.offset < begin + sizeof(ObjectHeader) ||
      location.offset > end || location.size > end - location.offset) {
    return object_lost("its location does not lie in its range");
  }
  const auto* header =
      reinterpret_cast<const ObjectHeader*>(readable_ + location.offset - sizeof(ObjectHeader));
  if (header->state.load(std::memory_order_acquire) != ObjectHeader::kSealed ||
      header->magic != ObjectHeader::kMagic || header->size != location.size ||
      std::memcmp(header->id, location.id.bytes.data(), sizeof header->id) != 0) {
    return object_lost("its owner has freed it");
  }
  return std::span(readable_ + location.offset, location.size);
}

void Segment::stamp(const ObjectLocation& location, ObjectHeader::State state) {
  auto* header =
      reinterpret_cast<ObjectHeader*>(writable_ + location.offset - sizeof(ObjectHeader));
  header->magic = ObjectHeader::kMagic;
  header->size = location.size;
  std::memcpy(header->id, location.id.bytes.data(), sizeof header->id);
  header->state.store(state, std::memory_order_release);
}

}  // namespace runtime
