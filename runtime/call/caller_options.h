// CallerOptions: the options of an actor that its callers need to know. Part of its address on the
// wire.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "runtime/core/result.h"

namespace runtime {

/// By method name, as in "add": the longest that any call of it may take.
using MethodTimeouts = std::map<std::string, std::chrono::milliseconds>;

struct CallerOptions {
  bool out_of_order =
      false;  // a call whose arguments are not there yet does not hold up those made after it
  MethodTimeouts method_timeouts{};

  bool is_default() const { return !out_of_order && method_timeouts.empty(); }
  bool operator==(const CallerOptions&) const = default;
};

/// Empty where nothing differs from the default.
std::string encode_caller_options(const CallerOptions& options);
/// Errors: kInvalidArgument.
Result<CallerOptions> decode_caller_options(const std::string& bytes);

}  // namespace runtime
