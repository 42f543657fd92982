#include "rl/model/device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

namespace rl {
namespace {

constexpr const char* kCure = "; take device cpu";

}  // namespace

runtime::Result<at::Device> find_device(const std::string& name) {
  if (name.empty() || name == "cpu") return at::Device(at::kCPU);
  const runtime::Status unknown = runtime::invalid_argument("device is '" + name + "'; it can be cpu, cuda or cuda:NUMBER");
  if (name != "cuda" && !name.starts_with("cuda:")) return unknown;
  at::Device device(at::kCUDA, 0);
  try {
    device = at::Device(name);
  } catch (const c10::Error&) {
    return unknown;
  }
  // It registers itself with LibTorch. One program serves machines with and without it, so nothing links it.
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return runtime::unavailable("device " + name + ": the LibTorch that this program runs with has no CUDA (" + ::dlerror() + ")" + kCure);
  }
  if (!at::hasCUDA()) return runtime::unavailable("device " + name + ": LibTorch finds no CUDA device on this machine" + kCure);
  const int devices = at::detail::getCUDAHooks().deviceCount();
  if (device.index() >= devices) return runtime::unavailable("device " + name + ": this machine has " + std::to_string(devices) + " CUDA devices, numbered from 0" + kCure);
  return at::Device(at::kCUDA, device.has_index() ? device.index() : 0);
}

}  // namespace rl
