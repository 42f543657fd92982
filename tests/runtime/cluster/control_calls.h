// Calls to the head that must not happen twice: a driver that makes them from several threads, and
// a checker of what they were answered.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"

namespace runtime {
class Runtime;
}

namespace runtime::test {

enum class ControlOp { kAdd, kPut, kRead, kDelete, kPublish, kUnpublish, kCreate, kRemove };

struct ControlCall {
  ControlOp op = ControlOp::kAdd;
  std::string key;         // or name, or group
  std::int64_t value = 0;  // the sum, what was put or read, whether it was there, the version
  ErrorCode code = ErrorCode::kOk;
  std::int64_t begin = 0;  // now_us()
  std::int64_t end = 0;
  std::string message = {};

  bool ok() const { return code == ErrorCode::kOk; }
  std::string to_string() const;
};

/// What is wrong with a history in which every call was answered; empty: nothing is. Sums count
/// from 1 without gaps and in the order of time. Exactly one call deletes a key, publishes or
/// unpublishes a version, or removes a group. A call that was refused came after another. A key
/// that one thread alone puts and reads has the last value.
std::vector<std::string> control_violations(const std::vector<ControlCall>& calls);

/// Makes all kinds of calls from several threads for `duration`.
std::vector<ControlCall> make_control_calls(Runtime& rt, std::chrono::milliseconds duration);

}  // namespace runtime::test
