// CHECK: aborts the process if a condition does not hold, in release builds too. For bugs only:
// never use it on input from the wire, a file or a user.
#pragma once

#include <string_view>

namespace runtime {

/// Writes "file:line: check failed: what" to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, std::string_view what);

}  // namespace runtime

// LibTorch's logging header defines macros of these names; include it before ours.
#undef CHECK
#define CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::runtime::check_failed(__FILE__, __LINE__, #condition))
