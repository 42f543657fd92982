// Regular expressions of users: PCRE2's syntax, which Python's is nearly a part of. PCRE2's types
// stay in the source.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace rl {

/// A compiled pattern; immutable, shared by any number of threads.
class UserPattern {
 public:
  /// "." matches line ends too, and text is UTF-8 where it is valid. kInvalidArgument: malformed,
  /// with the position.
  static runtime::Result<UserPattern> compile(const std::string& pattern);

  /// What the last match in `text` captured: its first group if the pattern has one, else all of
  /// it; nullopt when nothing matches. kResourceExhausted: the pattern backtracks without end on
  /// this text.
  runtime::Result<std::optional<std::string>> find_last(std::string_view text) const;

  bool has_group() const;

 private:
  struct Impl;
  explicit UserPattern(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace rl
