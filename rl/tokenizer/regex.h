// Regular expressions of tokenizers, written for Oniguruma's Ruby syntax, run by PCRE2 with its
// JIT. PCRE2's types stay in the source.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/result.h"

namespace rl {

/// What matching needs besides the pattern; reusable with any Regex, by one thread at a time.
class RegexScratch {
 public:
  RegexScratch();
  RegexScratch(RegexScratch&&) noexcept;
  ~RegexScratch();

  struct Impl;  // PCRE2's
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// A compiled pattern; immutable, shared by any number of threads.
class Regex {
 public:
  /// Errors: kInvalidArgument (malformed, with the position), kUnimplemented (a construct that
  /// would mean something else here).
  static runtime::Result<Regex> compile(std::string_view pattern);

  /// A pattern that matches exactly `text`.
  static runtime::Result<Regex> literal(std::string_view text);

  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  /// The next match at or after `from` in valid UTF-8; nullopt when there is none. `failed` is set
  /// when matching gave up (the pattern backtracks without end on this text).
  std::optional<std::pair<std::size_t, std::size_t>> find(std::string_view text, std::size_t from,
                                                          RegexScratch& scratch,
                                                          bool& failed) const;

 private:
  struct Impl;
  explicit Regex(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Oniguruma's Ruby syntax as PCRE2's: the classes \s, \w and \h mean different sets there. For
/// tests.
runtime::Result<std::string> regex_to_pcre2(std::string_view pattern);

}  // namespace rl
