// Result<T>: a value, or the Status that says why there is none.
#pragma once

#include <optional>
#include <utility>

#include "runtime/core/check.h"
#include "runtime/core/status.h"

namespace runtime {

/// Holds a T or a failed Status, never both and never neither.
/// Reading the value of a failure is a bug and ends the process with the status in the message.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value)
      : value_(std::move(value)) {
  }  // NOLINT(google-explicit-constructor): `return value;` must work
  Result(Status status)
      : status_(
            std::move(status)) {  // NOLINT(google-explicit-constructor): so must `return status;`
    // A bug of the program, which is reported to the caller.
    if (status_.ok()) status_ = internal_error("a Result was made from a Status that is ok");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(checked()); }

  T& operator*() & { return checked(); }
  const T& operator*() const& { return const_cast<Result*>(this)->checked(); }
  T&& operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &const_cast<Result*>(this)->checked(); }

  T value_or(T otherwise) const& { return ok() ? *value_ : std::move(otherwise); }

 private:
  T& checked() {
    if (!value_) check_failed(__FILE__, __LINE__, status_.to_string());
    return *value_;
  }

  Status status_;
  std::optional<T> value_;
};

}  // namespace runtime
