// CUDA's runtime, as far as LibTorch calls it: kernels do nothing, copies to the device copy, and
// what is read back from it is zero.
#include <cuda_runtime.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "tests/support/null_gpu/ledger.h"

namespace {

using null_gpu::Ledger;
using null_gpu::Memory;
using null_gpu::Work;

constexpr int kProcessors = 132;  // an H100's
constexpr int kSharedMemory = 49'152;
constexpr int kSharedMemoryMost = 232'448;
constexpr int kGridMost = 2'147'483'647;
constexpr int kThreadsOfProcessor = 2048;

struct Launch {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};

thread_local std::vector<Launch> configurations;
thread_local int current_device = 0;
std::atomic<std::uintptr_t> next_handle{0x1000};

template <class Handle>
Handle make_handle() {
  return reinterpret_cast<Handle>(++next_handle);
}

std::unordered_map<const void*, std::string>& kernel_names() {
  static auto* names = new std::unordered_map<const void*, std::string>();
  return *names;
}

// Launches until the device fails, by NULL_GPU_FAILS_AFTER; from then on all calls fail, as they do
// after an illegal access.
std::atomic<long> launches_left{[] {
  const char* set = std::getenv("NULL_GPU_FAILS_AFTER");
  return set != nullptr ? std::atol(set) : -1L;
}()};

cudaError_t state() { return launches_left.load() == 0 ? cudaErrorIllegalAddress : cudaSuccess; }

cudaError_t launch(const void* kernel) {
  if (launches_left.load() > 0) --launches_left;
  const auto found = kernel_names().find(kernel);
  Ledger::get().add(Work::kLaunch, found == kernel_names().end() ? "?" : found->second);
  return state();
}

cudaError_t copy(const char* call, void* to, const void* from, std::size_t bytes) {
  const bool to_device = Memory::get().has(to), from_device = Memory::get().has(from);
  Ledger::get().add(Work::kCopy,
                    std::string(call) + (from_device ? " D2" : " H2") + (to_device ? "D" : "H"));
  if (from_device && !to_device)
    std::memset(to, 0, bytes);
  else
    std::memmove(to, from, bytes);
  return state();
}

cudaError_t wait(const char* call) {
  Ledger::get().add(Work::kSync, call);
  return state();
}

cudaError_t host_memory(void** memory, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  *memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

}  // namespace

extern "C" {

// -- What the compiler's code calls: kernels and their names

void** __cudaRegisterFatBinary(void*) {
  static void* handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* kernel, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  kernel_names()[kernel] = name;
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  const Launch last = configurations.back();
  configurations.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared = last.shared;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void**, size_t, cudaStream_t) {
  return launch(kernel);
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3, dim3, void**, size_t, cudaStream_t) {
  return launch(kernel);
}
cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3, dim3, void**, size_t,
                                        cudaStream_t) {
  return launch(kernel);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void* kernel, void**) {
  return launch(kernel);
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->binaryVersion = attributes->ptxVersion = 90;
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, size_t) {
  *blocks = 4;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int,
                                                                   size_t, unsigned) {
  *blocks = 4;
  return cudaSuccess;
}

// -- The device

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = {};
  std::strcpy(p->name, "null GPU");
  p->totalGlobalMem = Memory::total();
  p->sharedMemPerBlock = kSharedMemory;
  p->sharedMemPerBlockOptin = kSharedMemoryMost;
  p->sharedMemPerMultiprocessor = 233'472;
  p->regsPerBlock = p->regsPerMultiprocessor = 65'536;
  p->warpSize = 32;
  p->maxThreadsPerBlock = 1024;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = kGridMost;
  p->maxGridSize[1] = p->maxGridSize[2] = 65'535;
  p->major = 9;
  p->multiProcessorCount = kProcessors;
  p->maxThreadsPerMultiProcessor = kThreadsOfProcessor;
  p->maxBlocksPerMultiProcessor = 32;
  p->l2CacheSize = 50 << 20;
  p->unifiedAddressing = p->concurrentKernels = 1;
  p->textureAlignment = 512;
  p->memoryBusWidth = 5120;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount: *value = kProcessors; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrMaxGridDimX: *value = kGridMost; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = kSharedMemory; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = kSharedMemoryMost; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = kThreadsOfProcessor; break;
    default: *value = 0;
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int size, int) {
  std::snprintf(id, static_cast<std::size_t>(size), "0000:00:00.0");
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* value, int, int) {
  *value = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return wait("cudaDeviceSynchronize"); }
cudaError_t cudaGetLastError() { return state(); }
cudaError_t cudaPeekAtLastError() { return state(); }
const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorIllegalAddress) return "an illegal memory access was encountered";
  return error == cudaErrorMemoryAllocation ? "out of memory" : "an error of the null GPU";
}
const char* cudaGetErrorName(cudaError_t) { return "nullGpuError"; }
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *function = nullptr;
  if (result != nullptr) *result = cudaDriverEntryPointSymbolNotFound;
  Ledger::get().add(Work::kOther, std::string("driver entry ") + name);
  return cudaErrorSymbolNotFound;
}

// -- Memory

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  Ledger::get().add(Work::kOther, "cudaMalloc");
  *memory = Memory::get().allocate(bytes);
  return *memory != nullptr ? state() : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void* memory) {
  Memory::get().release(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return host_memory(memory, bytes);
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  *free_bytes = Memory::get().free();
  *total = Memory::total();
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  Ledger::get().add(Work::kSync, "cudaMemcpy");
  return copy("cudaMemcpy", to, from, bytes);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  return copy("cudaMemcpyAsync", to, from, bytes);
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  std::memset(memory, value, bytes);
  return launch(nullptr);
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t) {
  std::memset(memory, value, bytes);
  return launch(nullptr);
}
cudaError_t cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, cudaMemcpyKind) {
  return cudaSuccess;
}
cudaError_t cudaGetSymbolAddress(void** address, const void*) {
  static char symbols[1 << 16];
  *address = symbols;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  *attributes = {};
  attributes->type = Memory::get().has(pointer) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  attributes->devicePointer = attributes->hostPointer = const_cast<void*>(pointer);
  return cudaSuccess;
}

// -- Streams and events: all is done at once

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = make_handle<cudaStream_t>();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) { return state(); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return wait("cudaStreamSynchronize"); }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status,
                                     unsigned long long*, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, size_t*) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = make_handle<cudaEvent_t>();
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = make_handle<cudaEvent_t>();
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventRecordWithFlags(cudaEvent_t, cudaStream_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return state(); }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return wait("cudaEventSynchronize"); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1;
  return cudaSuccess;
}

}  // extern "C"
