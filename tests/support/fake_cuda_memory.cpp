// A stand-in for the virtual memory of libcuda.so.1: memory of the "device" is this process's. What
// our side calls with what is checked as the driver would.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

namespace {

constexpr int kInvalid = 1, kOutOfMemory = 2;  // CUDA_ERROR_INVALID_VALUE, _OUT_OF_MEMORY
constexpr std::size_t kPageBytes = 64 << 10;

struct Location {
  int type, id;
};
struct Properties {
  int type, handle_types;
  Location location;
  void* win32;
  std::uint64_t flags;
};
struct Access {
  Location location;
  int flags;
};
struct Mapped {
  std::uint64_t handle = 0;
  std::size_t bytes = 0;
};

std::mutex mutex;
std::map<std::uint64_t, std::size_t> reserved;  // sizes by address
std::map<std::uint64_t, Mapped> mapped;         // by address
std::map<std::uint64_t, std::size_t> created;   // sizes by handle
std::set<std::uint64_t> behind_an_address;      // handles
std::uint64_t next_handle = 1;

// Pages that the "device" has: FAKE_CUDA_PAGES, as it is now.
std::size_t pages_max() {
  const char* set = std::getenv("FAKE_CUDA_PAGES");
  return set != nullptr ? std::strtoull(set, nullptr, 10) : 1 << 20;
}

bool is_of_device(const Properties* properties) {
  return properties->type == 1 && properties->handle_types == 0 && properties->location.type == 1 &&
         properties->flags == 0;
}

bool is_reserved(std::uint64_t address, std::size_t bytes) {
  const auto after = reserved.upper_bound(address);
  if (after == reserved.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return address - begin + bytes <= size;
}

}  // namespace

extern "C" {

int cuMemGetAllocationGranularity(std::size_t* bytes, const Properties* properties, int option) {
  if (!is_of_device(properties) || option != 0) return kInvalid;
  *bytes = kPageBytes;
  return 0;
}

int cuMemAddressReserve(std::uint64_t* address, std::size_t bytes, std::size_t, std::uint64_t,
                        unsigned long long) {
  if (bytes == 0 || bytes % kPageBytes != 0) return kInvalid;
  void* const begin =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return kOutOfMemory;
  const std::lock_guard lock(mutex);
  *address = reinterpret_cast<std::uint64_t>(begin);
  reserved[*address] = bytes;
  return 0;
}

int cuMemAddressFree(std::uint64_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  const auto found = reserved.find(address);
  if (found == reserved.end() || found->second != bytes) return kInvalid;
  const auto first = mapped.lower_bound(address);
  if (first != mapped.end() && first->first < address + bytes) return kInvalid;
  reserved.erase(found);
  return ::munmap(reinterpret_cast<void*>(address), bytes);
}

int cuMemCreate(std::uint64_t* handle, std::size_t bytes, const Properties* properties,
                unsigned long long) {
  if (!is_of_device(properties) || bytes % kPageBytes != 0) return kInvalid;
  const std::lock_guard lock(mutex);
  if (created.size() >= pages_max()) return kOutOfMemory;
  *handle = next_handle++;
  created[*handle] = bytes;
  return 0;
}

int cuMemRelease(std::uint64_t handle) {
  const std::lock_guard lock(mutex);
  if (behind_an_address.contains(handle)) return kInvalid;
  return created.erase(handle) == 1 ? 0 : kInvalid;
}

int cuMemMap(std::uint64_t address, std::size_t bytes, std::size_t offset, std::uint64_t handle,
             unsigned long long) {
  const std::lock_guard lock(mutex);
  const auto memory = created.find(handle);
  if (offset != 0 || memory == created.end() || memory->second != bytes ||
      !is_reserved(address, bytes) || mapped.contains(address) ||
      !behind_an_address.insert(handle).second)
    return kInvalid;
  mapped[address] = {handle, bytes};
  return 0;
}

int cuMemUnmap(std::uint64_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  const auto found = mapped.find(address);
  if (found == mapped.end() || found->second.bytes != bytes) return kInvalid;
  ::madvise(reinterpret_cast<void*>(address), bytes, MADV_DONTNEED);
  ::mprotect(reinterpret_cast<void*>(address), bytes, PROT_NONE);
  behind_an_address.erase(found->second.handle);
  mapped.erase(found);
  return 0;
}

int cuMemSetAccess(std::uint64_t address, std::size_t bytes, const Access* access,
                   std::size_t count) {
  if (count != 1 || access->location.type != 1 || access->flags != 3) return kInvalid;
  const std::lock_guard lock(mutex);
  for (std::size_t at = 0; at < bytes; at += kPageBytes)
    if (!mapped.contains(address + at)) return kInvalid;
  return ::mprotect(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE);
}

int cuGetErrorString(int code, const char** text) {
  *text = code == kOutOfMemory ? "out of memory" : "invalid argument";
  return 0;
}

/// What has been created and not released.
std::size_t fake_cuda_pages() {
  const std::lock_guard lock(mutex);
  return created.size();
}
}
