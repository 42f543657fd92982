#include "rl/cuda/cuda_memory.h"

#include <dlfcn.h>

#include <algorithm>

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

std::uint64_t address_of(void* begin) { return reinterpret_cast<std::uint64_t>(begin); }

template <class Function>
void bind_symbol(void* library, const char* symbol, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(::dlsym(library, symbol));
  if (function == nullptr && missing.empty()) missing = symbol;
}

}  // namespace

Result<std::unique_ptr<CudaMemory>> CudaMemory::open(int index, const std::string& driver) {
  void* const library = ::dlopen(driver.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return runtime::unimplemented("virtual memory of a device: " + std::string(::dlerror()));
  std::unique_ptr<CudaMemory> memory(new CudaMemory());
  CudaMemoryFunctions& functions = memory->functions_;
  std::string missing;
  bind_symbol(library, "cuMemGetAllocationGranularity", functions.granularity, missing);
  bind_symbol(library, "cuMemAddressReserve", functions.reserve, missing);
  bind_symbol(library, "cuMemAddressFree", functions.release, missing);
  bind_symbol(library, "cuMemCreate", functions.create, missing);
  bind_symbol(library, "cuMemRelease", functions.destroy, missing);
  bind_symbol(library, "cuMemMap", functions.map, missing);
  bind_symbol(library, "cuMemUnmap", functions.unmap, missing);
  bind_symbol(library, "cuMemSetAccess", functions.set_access, missing);
  bind_symbol(library, "cuGetErrorString", functions.error_string, missing);
  if (!missing.empty())
    return runtime::unimplemented("virtual memory of a device: " + driver + " has no " + missing +
                                  "; CUDA 10.2 and later have it");
  memory->properties_.location.id = index;
  const int asked = functions.granularity(&memory->page_bytes_, &memory->properties_, 0);
  if (const Status there = memory->status(asked, "cuMemGetAllocationGranularity"); !there.ok())
    return there;
  return memory;
}

CudaMemory::~CudaMemory() { trim(); }

Status CudaMemory::status(int code, const char* what) const {
  if (code == 0) return {};
  const char* text = nullptr;
  (void)functions_.error_string(code, &text);
  const std::string message =
      std::string(what) + ": CUDA says '" + (text != nullptr ? text : std::to_string(code)) + "'";
  return code == kOutOfMemory ? runtime::resource_exhausted(message)
                              : runtime::internal_error(message);
}

Result<void*> CudaMemory::reserve(std::size_t bytes) {
  std::uint64_t address = 0;
  const int made = functions_.reserve(&address, bytes, 0, 0, 0);
  if (const Status there = status(made, "cuMemAddressReserve"); !there.ok()) return there;
  return reinterpret_cast<void*>(address);
}

void CudaMemory::release(void* begin, std::size_t bytes) {
  (void)functions_.release(address_of(begin), bytes);
}

Status CudaMemory::map(void* begin, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t first = address_of(begin), end = first + bytes;
  Status mapped;
  std::uint64_t address = first;
  for (; address < end && mapped.ok(); address += page_bytes_) mapped = map_page(address);
  if (mapped.ok()) {
    const CudaMemoryFunctions::Access access{.location = properties_.location};
    mapped = status(functions_.set_access(first, bytes, &access, 1), "cuMemSetAccess");
  }
  if (mapped.ok()) return {};
  for (address = first; address < end; address += page_bytes_) unmap_page(address);
  return mapped;
}

Status CudaMemory::map_page(std::uint64_t address) {
  std::uint64_t handle = 0;
  if (!spare_.empty()) {
    handle = spare_.back();
    spare_.pop_back();
  } else if (const Status made =
                 status(functions_.create(&handle, page_bytes_, &properties_, 0), "cuMemCreate");
             !made.ok()) {
    return made;
  }
  const Status mapped = status(functions_.map(address, page_bytes_, 0, handle, 0), "cuMemMap");
  if (mapped.ok())
    pages_[address] = handle;
  else
    spare_.push_back(handle);
  most_pages_ = std::max(most_pages_, pages_.size() + spare_.size());
  return mapped;
}

void CudaMemory::unmap(void* begin, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t first = address_of(begin), end = first + bytes;
  for (std::uint64_t address = first; address < end; address += page_bytes_) unmap_page(address);
}

void CudaMemory::unmap_page(std::uint64_t address) {
  const auto page = pages_.extract(address);
  if (page.empty()) return;
  if (functions_.unmap(address, page_bytes_) == 0) spare_.push_back(page.mapped());
}

std::size_t CudaMemory::most_bytes() const {
  const std::lock_guard lock(mutex_);
  return most_pages_ * page_bytes_;
}

void CudaMemory::trim() {
  const std::lock_guard lock(mutex_);
  for (const std::uint64_t handle : spare_) (void)functions_.destroy(handle);
  spare_.clear();
}

}  // namespace rl
