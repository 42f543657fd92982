#include "rl/cuda/nccl_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <vector>

#include "rl/cuda/loaded_library.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

constexpr int kFloat32 = 7;  // ncclFloat32
constexpr int kSum = 0;      // ncclSum

/// A library that is being bound: the first function that is missing is named.
class Loading {
 public:
  /// Of the files the first that opens counts. What is said is of the first.
  Loading(const std::vector<std::string>& files, const char* cure) : name_(files.front()) {
    std::string error;
    for (const std::string& file : files) {
      handle_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_) return;
      if (error.empty()) error = ::dlerror();
    }
    status_ = runtime::unavailable(error + "; " + cure);
  }
  template <class Function>
  void bind(Function& function, const char* symbol) {
    if (!status_.ok()) return;
    function = reinterpret_cast<Function>(::dlsym(handle_, symbol));
    if (!function)
      status_ = runtime::unavailable(name_ + " has no " + symbol +
                                     ": it is too old, or another library of that name");
  }
  const Status& status() const { return status_; }

 private:
  const std::string name_;
  void* handle_ = nullptr;
  Status status_;
};

// By the loader's rules, then as wheels have it: <root>/torch/lib and <root>/nvidia/nccl/lib.
std::vector<std::string> nccl_files(const NcclLibrary::Names& names) {
  std::vector<std::string> files{names.nccl};
  const std::filesystem::path root = names.torch_folder.parent_path().parent_path();
  if (!names.torch_folder.empty()) files.push_back(root / "nvidia/nccl/lib/libnccl.so.2");
  return files;
}

Status nccl_status(const NcclFunctions& functions, int code, const char* what) {
  return code == 0 ? Status()
                   : runtime::internal_error(
                         std::string(what) + ": NCCL says '" + functions.get_error_string(code) +
                         "' (NCCL_DEBUG=WARN in the nodes' environment says more)");
}

Status cuda_status(const NcclFunctions& functions, int code, const char* what) {
  if (code == 0) return {};
  const char* text = nullptr;
  if (functions.cu_error_string(code, &text) != 0 || !text) text = "an unknown error";
  return runtime::internal_error(std::string(what) + ": CUDA says '" + text + "'");
}

}  // namespace

Result<std::unique_ptr<NcclLibrary>> NcclLibrary::load(const Names& names) {
  std::unique_ptr<NcclLibrary> library(new NcclLibrary());
  NcclFunctions& f = library->functions_;
  Loading cuda({names.cuda},
               "install the driver's libraries (libcuda1), or run the container with --gpus all");
  cuda.bind(f.cu_init, "cuInit");
  cuda.bind(f.cu_device_get, "cuDeviceGet");
  cuda.bind(f.cu_primary_context, "cuDevicePrimaryCtxRetain");
  cuda.bind(f.cu_set_context, "cuCtxSetCurrent");
  cuda.bind(f.cu_allocate, "cuMemAlloc_v2");
  cuda.bind(f.cu_free, "cuMemFree_v2");
  cuda.bind(f.cu_to_device, "cuMemcpyHtoD_v2");
  cuda.bind(f.cu_to_host, "cuMemcpyDtoH_v2");
  cuda.bind(f.cu_synchronize, "cuCtxSynchronize");
  cuda.bind(f.cu_error_string, "cuGetErrorString");
  if (!cuda.status().ok()) return cuda.status();
  Loading nccl(nccl_files(names),
               "install it (apt-get install libnccl2), or name its folder in LD_LIBRARY_PATH where "
               "the node is started");
  nccl.bind(f.get_version, "ncclGetVersion");
  nccl.bind(f.get_unique_id, "ncclGetUniqueId");
  nccl.bind(f.comm_init_rank, "ncclCommInitRank");
  nccl.bind(f.all_reduce, "ncclAllReduce");
  nccl.bind(f.comm_destroy, "ncclCommDestroy");
  nccl.bind(f.get_error_string, "ncclGetErrorString");
  if (!nccl.status().ok()) return nccl.status();
  return library;
}

Result<std::unique_ptr<NcclLibrary>> NcclLibrary::load() {
  Names names;
  names.torch_folder = folder_of_loaded("libtorch_cpu.so");
  return load(names);
}

std::string NcclLibrary::version() const {
  int version = 0;
  if (functions_.get_version(&version) != 0) return "?";
  return std::to_string(version / 10'000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

Result<NcclId> NcclLibrary::make_id() const {
  NcclFunctions::Id id{};
  if (Status status = nccl_status(functions_, functions_.get_unique_id(&id), "ncclGetUniqueId");
      !status.ok())
    return status;
  return id.bytes;
}

Result<std::unique_ptr<NcclRank>> NcclRank::join(const NcclFunctions& functions, const NcclId& id,
                                                 int rank, int size, std::size_t elements) {
  std::unique_ptr<NcclRank> joined(new NcclRank(functions));
  if (Status status = joined->enter(id, rank, size, elements); !status.ok()) return status;
  return joined;
}

Status NcclRank::enter(const NcclId& id, int rank, int size, std::size_t elements) {
  int device = 0;
  void* context = nullptr;
  Status status = cuda_status(functions_, functions_.cu_init(0), "cuInit");
  if (status.ok())
    status = cuda_status(functions_, functions_.cu_device_get(&device, 0), "cuDeviceGet");
  if (status.ok())
    status = cuda_status(functions_, functions_.cu_primary_context(&context, device),
                         "cuDevicePrimaryCtxRetain");
  if (status.ok())
    status = cuda_status(functions_, functions_.cu_set_context(context), "cuCtxSetCurrent");
  if (status.ok())
    status = cuda_status(
        functions_,
        functions_.cu_allocate(&memory_, std::max<std::size_t>(elements, 1) * sizeof(float)),
        "cuMemAlloc");
  if (status.ok())
    status = nccl_status(functions_, functions_.comm_init_rank(&comm_, size, {id}, rank),
                         "ncclCommInitRank");
  if (status.ok()) elements_ = elements;
  return status;
}

NcclRank::~NcclRank() {
  if (comm_) (void)functions_.comm_destroy(comm_);
  if (memory_ != 0) (void)functions_.cu_free(memory_);
}

Status NcclRank::write(std::span<const float> values) {
  if (values.size() > elements_)
    return runtime::invalid_argument("there is room for " + std::to_string(elements_) +
                                     " values, not " + std::to_string(values.size()));
  return cuda_status(functions_,
                     functions_.cu_to_device(memory_, values.data(), values.size_bytes()),
                     "cuMemcpyHtoD");
}

Status NcclRank::read(std::span<float> values) {
  if (values.size() > elements_)
    return runtime::invalid_argument("there is room for " + std::to_string(elements_) +
                                     " values, not " + std::to_string(values.size()));
  return cuda_status(functions_, functions_.cu_to_host(values.data(), memory_, values.size_bytes()),
                     "cuMemcpyDtoH");
}

Status NcclRank::all_reduce_sum(std::size_t elements) {
  if (elements > elements_)
    return runtime::invalid_argument("there is room for " + std::to_string(elements_) +
                                     " values, not " + std::to_string(elements));
  auto* values = reinterpret_cast<void*>(memory_);
  const int code = functions_.all_reduce(values, values, elements, kFloat32, kSum, comm_, nullptr);
  if (Status status = nccl_status(functions_, code, "ncclAllReduce"); !status.ok()) return status;
  return cuda_status(functions_, functions_.cu_synchronize(), "cuCtxSynchronize");
}

}  // namespace rl
