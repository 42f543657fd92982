// A stand-in for libnccl.so.2 and libcuda.so.1: "GPU" memory is this process's, ranks are its
// threads. What our side calls with what is checked as the real ones would.
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Group {
  int size = 0, arrived = 0, round = 0;
  std::vector<float> sum, result;
};
struct Rank {
  Group* group;
};

constexpr int kInvalid = 4;  // ncclInvalidArgument
std::mutex mutex;
std::condition_variable changed;
std::map<std::string, Group> groups;
int next_id = 0;
thread_local bool has_context = false;

/// Until all have come so far.
void meet(std::unique_lock<std::mutex>& lock, Group& group) {
  const int round = group.round;
  if (++group.arrived == group.size) {
    group.arrived = 0;
    ++group.round;
    group.result = std::move(group.sum);
    group.sum.clear();
    changed.notify_all();
  }
  changed.wait(lock, [&] { return group.round != round; });
}

}  // namespace

extern "C" {

struct Id {
  char bytes[128];
};

int ncclGetVersion(int* version) { return *version = 22'703, 0; }
const char* ncclGetErrorString(int code) {
  return code == kInvalid ? "invalid argument" : "unhandled system error";
}
int ncclGetUniqueId(Id* id) {
  std::lock_guard lock(mutex);
  std::memset(id->bytes, 0, sizeof id->bytes);
  std::memcpy(id->bytes, "fake", 4);
  id->bytes[127] = static_cast<char>(++next_id);
  return 0;
}
int ncclCommInitRank(void** comm, int size, Id id, int rank) {
  if (std::memcmp(id.bytes, "fake", 4) != 0 || rank < 0 || rank >= size || !has_context)
    return kInvalid;
  std::unique_lock lock(mutex);
  Group& group = groups[std::string(id.bytes, sizeof id.bytes)];
  group.size = size;
  meet(lock, group);
  *comm = new Rank{&group};
  return 0;
}
int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int operation,
                  void* comm, void* stream) {
  if (type != 7 || operation != 0 || stream != nullptr || !has_context) return kInvalid;
  if (std::getenv("FAKE_NCCL_BREAKS")) return 2;
  Group& group = *static_cast<Rank*>(comm)->group;
  std::unique_lock lock(mutex);
  group.sum.resize(count);
  for (std::size_t i = 0; i < count; ++i) group.sum[i] += static_cast<const float*>(from)[i];
  meet(lock, group);
  std::memcpy(to, group.result.data(), count * sizeof(float));
  meet(lock, group);  // no rank begins the next sum before all have this one
  return 0;
}
int ncclCommDestroy(void* comm) { return delete static_cast<Rank*>(comm), 0; }

int cuInit(unsigned) { return std::getenv("FAKE_CUDA_HAS_NO_DEVICE") ? 100 : 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &has_context, 0; }
int cuCtxSetCurrent(void* context) { return has_context = context != nullptr, 0; }
int cuMemAlloc_v2(std::uint64_t* memory, std::size_t bytes) {
  return *memory = reinterpret_cast<std::uint64_t>(std::malloc(bytes)), 0;
}
int cuMemFree_v2(std::uint64_t memory) { return std::free(reinterpret_cast<void*>(memory)), 0; }
int cuMemcpyHtoD_v2(std::uint64_t to, const void* from, std::size_t bytes) {
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), 0;
}
int cuMemcpyDtoH_v2(void* to, std::uint64_t from, std::size_t bytes) {
  return std::memcpy(to, reinterpret_cast<void*>(from), bytes), 0;
}
int cuCtxSynchronize() { return 0; }
int cuGetErrorString(int, const char** text) {
  return *text = "no CUDA-capable device is detected", 0;
}

}  // extern "C"
