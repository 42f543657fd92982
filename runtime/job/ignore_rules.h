// The rules of a folder's `.starlingignore`, which are those of gitignore(5).
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace runtime {

/// A pattern of gitignore(5): `*`, `?`, `[a-z]`, `**/`, `/**`, `\` before what is meant as it
/// stands. A value. Cost of a match: the text's length times the pattern's, at most.
class IgnorePattern {
 public:
  /// With `in_paths` it is for paths, in which only `**` goes beyond a '/'. A pattern that is
  /// malformed (an unclosed `[`, a `\` at the end) matches nothing.
  IgnorePattern(std::string_view pattern, bool in_paths);
  bool matches(std::string_view text) const;

 private:
  enum class Kind : std::uint8_t {
    kByte,
    kSet,        // one byte of a set
    kName,       // any bytes but '/': `*`
    kPath,       // any bytes: `**`
    kMaybePath,  // before the two tokens that are `**/`: nothing at all may stand for both
  };
  struct Token {
    Kind kind = Kind::kByte;
    std::uint8_t byte = 0;
    std::size_t set = 0;
  };
  using Set = std::bitset<256>;

  void add_stars(std::string_view pattern, std::size_t& at, bool in_paths, std::size_t first);
  bool add_set(std::string_view pattern, std::size_t& at);
  void enter(std::size_t place, std::vector<std::uint8_t>& places) const;
  bool takes(const Token& token, std::uint8_t byte) const;

  std::vector<Token> tokens_;
  std::vector<Set> sets_;
  std::size_t plain_ = 0;  // as many tokens are bytes at the beginning
  bool malformed_ = false;
};

/// The lines of one file. A value. A later line decides over an earlier one, and takes back what
/// that ignores if it begins with `!`. A '/' at the end is for folders only. A '/' in front or
/// within is from the file's folder; without one, a name at any depth is meant. `#` begins a
/// comment; blanks at the end count behind a `\` only.
class IgnoreRules {
 public:
  IgnoreRules() = default;
  explicit IgnoreRules(std::string_view text);
  /// Whether what lies at `path` from the file's folder is left out; nothing: no line says so.
  /// Those in a folder that is left out are left out too, and are not to be asked for.
  std::optional<bool> ignores(std::string_view path, bool is_folder) const;
  bool empty() const { return rules_.empty(); }

 private:
  struct Rule {
    IgnorePattern pattern;
    bool takes_back = false;
    bool in_paths = false;
    bool folders_only = false;
  };
  void add(std::string_view line);
  std::vector<Rule> rules_;
};

}  // namespace runtime
