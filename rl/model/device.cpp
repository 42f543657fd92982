#include "rl/model/device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/DeviceType.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <algorithm>
#include <cctype>

namespace rl {
namespace {

constexpr const char* kCure = "; take device cpu";

std::string unknown(const std::string& name) {
  return "device is '" + name + "'; it can be cpu, cuda or cuda:NUMBER";
}

runtime::Result<at::Device> find_cuda(const std::string& name) {
  at::Device device(at::kCUDA, 0);
  try {
    device = at::Device(name);
  } catch (const c10::Error&) {
    return runtime::invalid_argument(unknown(name));
  }
  // It registers itself with LibTorch. One program serves machines with and without it, so nothing
  // links it.
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return runtime::unavailable("device " + name +
                                ": the LibTorch that this program runs with has no CUDA (" +
                                ::dlerror() + ")" + kCure);
  }
  if (!at::hasCUDA())
    return runtime::unavailable("device " + name +
                                ": LibTorch finds no CUDA device on this machine" + kCure);
  const int devices = at::detail::getCUDAHooks().deviceCount();
  if (device.index() >= devices)
    return runtime::unavailable("device " + name + ": this machine has " + std::to_string(devices) +
                                " CUDA devices, numbered from 0" + kCure);
  return at::Device(at::kCUDA, device.has_index() ? device.index() : 0);
}

// What makers of other accelerators call their plugin, and it calls itself.
runtime::Result<at::Device> find_plugin(const std::string& name) {
  const std::string kind = name.substr(0, name.find(':'));
  if (kind.empty() ||
      !std::all_of(kind.begin(), kind.end(), [](unsigned char c) { return std::islower(c) != 0; }))
    return runtime::invalid_argument(unknown(name));
  const std::string library = "libtorch_" + kind + ".so";
  if (::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
    return runtime::unavailable(unknown(name) +
                                "; of another device LibTorch's plugin is needed: " + ::dlerror());
  if (c10::get_privateuse1_backend() != kind)
    return runtime::unavailable("device " + name + ": " + library + " registers '" +
                                c10::get_privateuse1_backend() + "' with LibTorch" + kCure);
  try {
    const at::Device device(name);
    return at::Device(device.type(), device.has_index() ? device.index() : 0);
  } catch (const c10::Error&) {
    return runtime::invalid_argument(unknown(name));
  }
}

}  // namespace

runtime::Result<at::Device> find_device(const std::string& name) {
  if (name.empty() || name == "cpu") return at::Device(at::kCPU);
  return name == "cuda" || name.starts_with("cuda:") ? find_cuda(name) : find_plugin(name);
}

}  // namespace rl
