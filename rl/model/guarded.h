// ATen's exceptions as errors, by kind.
#pragma once

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "runtime/core/result.h"

namespace rl {

/// An error of ours that passes through ATen: out of a listener of a pass.
class StatusException final : public std::exception {
 public:
  explicit StatusException(runtime::Status status) : status_(std::move(status)) {}
  const runtime::Status& status() const { return status_; }
  const char* what() const noexcept override { return status_.message().c_str(); }

 private:
  runtime::Status status_;
};

inline void throw_unless_ok(const runtime::Status& status) {
  if (!status.ok()) throw StatusException(status);
}

/// Of the exception that is being handled; call it in a catch block alone. kResourceExhausted: the
/// host or the device has no memory left; that of a StatusException; kInternal: everything else.
/// Where the device itself has failed, the message says that the process must end: no later call of
/// it can succeed.
runtime::Status caught_status(const std::string& doing);

/// From now on such a failure of a device ends this process, with exit code 1 and the error as its
/// last output on stderr. It is for a process whose owner starts it again. Callers then hear of the
/// death of the process instead. Any thread.
void end_process_with_its_device();

/// Runs `compute`, which may throw what ATen throws. It returns a T, a Result<T> or (where T is
/// void) nothing or a Status. Errors: see caught_status(); those that `compute` returns.
template <class T, class Compute>
auto guarded(const std::string& doing, Compute&& compute)
    -> std::conditional_t<std::is_void_v<T>, runtime::Status, runtime::Result<T>> {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Compute>>) {
      std::forward<Compute>(compute)();
      return {};
    } else {
      return std::forward<Compute>(compute)();
    }
  } catch (...) {
    return caught_status(doing);
  }
}

}  // namespace rl
