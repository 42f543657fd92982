#include "runtime/call/group_failure.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace runtime {

namespace {

/// The message without what differs from member to member: words of hexadecimal digits that have a
/// decimal one.
std::string cause_shape(const std::string& message) {
  std::string shape;
  std::string word;
  const auto flush = [&] {
    const bool is_number =
        std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); }) &&
        std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isxdigit(c); });
    shape += is_number ? "#" : word;
    word.clear();
  };
  for (const char c : message) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      word += c;
    } else {
      flush();
      shape += c;
    }
  }
  flush();
  return shape;
}

std::string count_text(std::size_t count, const char* one, const char* several) {
  return std::to_string(count) + (count == 1 ? one : several);
}

}  // namespace

int cause_rank(const Status& failure) {
  switch (failure.code()) {
    case ErrorCode::kOk: return 0;
    case ErrorCode::kCancelled: return 1;  // it was told to stop
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadlineExceeded: return 2;  // another was not there
    case ErrorCode::kActorDied:
      // An end that was ordered, rather than a crash or an error.
      return failure.message().find("SIGTERM") == std::string::npos ? 4 : 3;
    case ErrorCode::kObjectLost: return 4;
    case ErrorCode::kTaskFailed: return 5;
    default: return 6;
  }
}

bool is_same_cause(const Status& a, const Status& b) {
  return a.code() == b.code() && cause_shape(a.message()) == cause_shape(b.message());
}

Status group_failure(const std::vector<MemberFailure>& failures) {
  const auto cause = std::max_element(failures.begin(), failures.end(),
                                      [](const MemberFailure& a, const MemberFailure& b) {
                                        return cause_rank(a.status) < cause_rank(b.status);
                                      });
  const MemberFailure* other = nullptr;
  std::size_t same = 0;
  std::size_t others = 0;
  for (const MemberFailure& failure : failures) {
    if (&failure == &*cause) continue;
    if (is_same_cause(failure.status, cause->status)) {
      ++same;
      continue;
    }
    ++others;
    if (!other || cause_rank(failure.status) > cause_rank(other->status)) other = &failure;
  }
  std::string text = "rank " + std::to_string(cause->rank) + ": " + cause->status.message();
  if (same > 0) text += "; and " + std::to_string(same) + " more with the same";
  if (other) {
    text += "; " + count_text(others, " other failed otherwise", " others failed otherwise") +
            ", for instance rank " + std::to_string(other->rank) + ": " + other->status.message();
  }
  return Status(cause->status.code(), text);
}

}  // namespace runtime
