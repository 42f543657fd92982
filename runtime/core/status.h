// Status: success or an expected failure. Invariant: the code is kOk exactly when the message is
// empty. Codes are few on purpose: one exists only if a caller acts differently on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace runtime {

/// What a caller can do about a failure. The numbers travel on the wire and never change.
enum class ErrorCode : std::uint16_t {
  kOk = 0,
  kInvalidArgument = 1,    // fix the call
  kNotFound = 2,           // fix the call
  kUnimplemented = 3,      // fix the call, or upgrade the peer
  kUnavailable = 4,        // retry with back-off
  kDeadlineExceeded = 5,   // may have run: retry only if idempotent
  kResourceExhausted = 6,  // wait or shrink
  kCancelled = 7,          // stop quietly
  kActorDied = 8,          // re-create through the supervisor
  kObjectLost = 9,         // recompute; owner or copies are gone
  kTaskFailed = 10,        // read the remote handler's message
  kInternal = 11,          // report a bug
};

/// The name users see, for instance "invalid argument".
std::string_view to_string(ErrorCode code);

/// The code for a number from the wire; an unknown number becomes kInternal.
ErrorCode error_code_from_wire(std::uint16_t value);

/// Success, or a code with a message. A value: copy it freely.
/// Messages are lower case without a full stop, and name the ids: "actor 7f3a: peer closed during
/// call 91".
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == ErrorCode::kOk; }
  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

  /// The same failure with context before its message: "loading model: <message>". Success stays
  /// success. A message that grows beyond 4 KiB (after thousands of nested calls, for example)
  /// keeps only its beginning and its end.
  Status with_context(std::string_view context) const;

  /// "ok", or "not found: <message>".
  std::string to_string() const;

  bool operator==(const Status&) const = default;

 private:
  ErrorCode code_ = ErrorCode::kOk;
  std::string message_;
};

Status invalid_argument(std::string message);
Status not_found(std::string message);
Status unimplemented(std::string message);
Status unavailable(std::string message);
Status deadline_exceeded(std::string message);
Status resource_exhausted(std::string message);
Status cancelled(std::string message);
Status actor_died(std::string message);
Status object_lost(std::string message);
Status task_failed(std::string message);
Status internal_error(std::string message);

/// The failure for a value of errno: "<what>: No such file or directory". ENOENT gives kNotFound,
/// ENOSPC and EMFILE kResourceExhausted, connection errors kUnavailable, the rest kInvalidArgument.
Status errno_status(int error, std::string_view what);

}  // namespace runtime
