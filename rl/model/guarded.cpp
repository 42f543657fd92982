#include "rl/model/guarded.h"

#include <c10/util/Exception.h>

#include <exception>
#include <new>

namespace rl {
namespace {

// LibTorch's CPU allocator reports exhaustion as a plain error, in one of two ways.
bool is_of_the_hosts_memory(const std::string& what) {
  return what.find("not enough memory") != std::string::npos ||
         what.find("can't allocate memory") != std::string::npos;
}

}  // namespace

runtime::Status caught_status(const std::string& doing) {
  const std::string where = doing + ": ";
  try {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    return runtime::resource_exhausted(where + error.what_without_backtrace());
  } catch (const c10::AcceleratorError& error) {
    // An illegal access, say: CUDA gives every later call of this process the same error.
    return runtime::internal_error(where + error.what_without_backtrace() +
                                   "; the device is lost to this process, which must end");
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
