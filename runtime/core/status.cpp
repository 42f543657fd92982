#include "runtime/core/status.h"

#include <sys/resource.h>

#include <cerrno>
#include <system_error>

namespace runtime {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk: return "ok";
    case ErrorCode::kInvalidArgument: return "invalid argument";
    case ErrorCode::kNotFound: return "not found";
    case ErrorCode::kUnimplemented: return "unimplemented";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kDeadlineExceeded: return "deadline exceeded";
    case ErrorCode::kResourceExhausted: return "resource exhausted";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kActorDied: return "actor died";
    case ErrorCode::kObjectLost: return "object lost";
    case ErrorCode::kTaskFailed: return "task failed";
    case ErrorCode::kInternal: return "internal error";
  }
  return "internal error";
}

ErrorCode error_code_from_wire(std::uint16_t value) {
  return value <= static_cast<std::uint16_t>(ErrorCode::kInternal) ? static_cast<ErrorCode>(value)
                                                                   : ErrorCode::kInternal;
}

Status Status::with_context(std::string_view context) const {
  if (ok()) return *this;
  constexpr std::size_t kBytesMax = 4096;
  constexpr std::string_view kLeftOut = " [...] ";
  std::string text = std::string(context) + ": " + message_;
  if (text.size() > kBytesMax) {
    const std::size_t half = (kBytesMax - kLeftOut.size()) / 2;
    text = text.substr(0, half) + std::string(kLeftOut) + text.substr(text.size() - half);
  }
  return Status(code_, std::move(text));
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  return std::string(runtime::to_string(code_)) + ": " + message_;
}

Status invalid_argument(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message)};
}
Status not_found(std::string message) { return {ErrorCode::kNotFound, std::move(message)}; }
Status unimplemented(std::string message) {
  return {ErrorCode::kUnimplemented, std::move(message)};
}
Status unavailable(std::string message) { return {ErrorCode::kUnavailable, std::move(message)}; }
Status deadline_exceeded(std::string message) {
  return {ErrorCode::kDeadlineExceeded, std::move(message)};
}
Status resource_exhausted(std::string message) {
  return {ErrorCode::kResourceExhausted, std::move(message)};
}
Status cancelled(std::string message) { return {ErrorCode::kCancelled, std::move(message)}; }
Status actor_died(std::string message) { return {ErrorCode::kActorDied, std::move(message)}; }
Status object_lost(std::string message) { return {ErrorCode::kObjectLost, std::move(message)}; }
Status task_failed(std::string message) { return {ErrorCode::kTaskFailed, std::move(message)}; }
Status internal_error(std::string message) { return {ErrorCode::kInternal, std::move(message)}; }

namespace {

/// The words for "Too many open files", which are not about files alone.
std::string descriptors_exhausted(int error) {
  if (error == ENFILE)
    return " (the machine's descriptors are used up: raise fs.file-max with sysctl)";
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return " (this process has used up its " + std::to_string(limit.rlim_cur) +
         " descriptors, of files, sockets and memory: raise the limit with ulimit -n, whose hard "
         "limit here is " +
         std::to_string(limit.rlim_max) + ")";
}

}  // namespace

Status errno_status(int error, std::string_view what) {
  std::string message = std::string(what) + ": " + std::generic_category().message(error);
  switch (error) {
    case ENOENT: return not_found(std::move(message));
    case EFBIG:
      return resource_exhausted(std::move(message) +
                                " (the process's limit, ulimit -f, or the file system's)");
    case EMFILE:
    case ENFILE: return resource_exhausted(std::move(message) + descriptors_exhausted(error));
    case ENOSPC:
    case EDQUOT:
    case ENOMEM: return resource_exhausted(std::move(message));
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EADDRINUSE:
    case EAGAIN: return unavailable(std::move(message));
    case ETIMEDOUT: return deadline_exceeded(std::move(message));
    default: return invalid_argument(std::move(message));
  }
}

}  // namespace runtime
