#include "rl/model/guarded.h"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <new>

namespace rl {
namespace {

// cudaErrorMemoryAllocation: of what LibTorch does not allocate as tensors, kernels that are
// loaded.
constexpr int kCudaErrorMemoryAllocation = 2;

// As the device's context: one a process.
std::atomic<bool> ends_with_device{false};

// No destructors: they would wait for the device.
[[noreturn]] void end_now(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::fflush(nullptr);
  ::_exit(1);
}

// LibTorch's CPU allocator reports exhaustion as a plain error, in one of two ways.
bool is_of_the_hosts_memory(const std::string& what) {
  return what.find("not enough memory") != std::string::npos ||
         what.find("can't allocate memory") != std::string::npos;
}

}  // namespace

void end_process_with_its_device() { ends_with_device = true; }

runtime::Status caught_status(const std::string& doing) {
  const std::string where = doing + ": ";
  try {
    throw;
  } catch (const StatusException& error) {
    return error.status().with_context(doing);
  } catch (const c10::OutOfMemoryError& error) {
    return runtime::resource_exhausted(where + error.what_without_backtrace());
  } catch (const c10::AcceleratorError& error) {
    if (error.get_error_code() == kCudaErrorMemoryAllocation)
      return runtime::resource_exhausted(where + error.what_without_backtrace());
    // An illegal access, say: CUDA gives every later call of this process the same error.
    const std::string what = where + error.what_without_backtrace() +
                             "; the device is lost to this process, which must end";
    if (ends_with_device) end_now(what);
    return runtime::internal_error(what);
  } catch (const c10::Error& error) {
    const std::string what = error.what_without_backtrace();
    if (is_of_the_hosts_memory(what)) return runtime::resource_exhausted(where + what);
    return runtime::internal_error(where + what);
  } catch (const std::bad_alloc&) {
    return runtime::resource_exhausted(where + "out of memory");
  } catch (const std::exception& error) {
    return runtime::internal_error(where + error.what());
  }
}

}  // namespace rl
