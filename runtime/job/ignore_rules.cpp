#include "runtime/job/ignore_rules.h"

#include <algorithm>
#include <array>

namespace runtime {

namespace {

constexpr std::string_view kSpecialBytes = "*?[\\";

struct ByteClass {
  std::string_view name;
  bool (*has)(int byte);
};

// Letters of ASCII, whatever the locale.
bool is_lower(int c) { return c >= 'a' && c <= 'z'; }
bool is_upper(int c) { return c >= 'A' && c <= 'Z'; }
bool is_alpha(int c) { return is_lower(c) || is_upper(c); }
bool is_digit(int c) { return c >= '0' && c <= '9'; }
bool is_alnum(int c) { return is_alpha(c) || is_digit(c); }
bool is_blank(int c) { return c == ' ' || c == '\t'; }
bool is_space(int c) { return is_blank(c) || c == '\n' || c == '\r'; }
bool is_cntrl(int c) { return c < 0x20 || c == 0x7f; }
bool is_print(int c) { return c >= 0x20 && c < 0x7f; }
bool is_graph(int c) { return c > 0x20 && c < 0x7f; }
bool is_punct(int c) { return is_graph(c) && !is_alnum(c); }
bool is_xdigit(int c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

constexpr std::array<ByteClass, 12> kByteClasses{{{"alnum", is_alnum},
                                                  {"alpha", is_alpha},
                                                  {"blank", is_blank},
                                                  {"cntrl", is_cntrl},
                                                  {"digit", is_digit},
                                                  {"graph", is_graph},
                                                  {"lower", is_lower},
                                                  {"print", is_print},
                                                  {"punct", is_punct},
                                                  {"space", is_space},
                                                  {"upper", is_upper},
                                                  {"xdigit", is_xdigit}}};

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

/// Without blanks at the end, except for one that a `\` stands before.
std::string_view without_last_blanks(std::string_view line) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size())
      ++i;
    else if (line[i] == ' ')
      continue;
    end = i + 1;
  }
  return line.substr(0, end);
}

}  // namespace

// -- One pattern

IgnorePattern::IgnorePattern(std::string_view pattern, bool in_paths) {
  // git compares what stands before the first special byte by itself, and a `**` right behind it
  // then is at the beginning of a pattern.
  const std::size_t first = std::min(pattern.find_first_of(kSpecialBytes), pattern.size());
  for (std::size_t at = 0; at < pattern.size() && !malformed_;) {
    const std::uint8_t byte = byte_at(pattern, at);
    if (byte == '*') {
      add_stars(pattern, at, in_paths, first);
    } else if (byte == '?') {
      sets_.push_back(Set().set());
      if (in_paths) sets_.back().reset('/');
      tokens_.push_back({Kind::kSet, 0, sets_.size() - 1});
      ++at;
    } else if (byte == '[') {
      malformed_ = !add_set(pattern, at);
      if (!malformed_ && in_paths) sets_.back().reset('/');
    } else {
      if (byte == '\\' && ++at == pattern.size()) {
        malformed_ = true;
        return;
      }
      tokens_.push_back({Kind::kByte, byte_at(pattern, at), 0});
      ++at;
    }
  }
  while (plain_ < tokens_.size() && tokens_[plain_].kind == Kind::kByte) ++plain_;
}

void IgnorePattern::add_stars(std::string_view pattern, std::size_t& at, bool in_paths,
                              std::size_t first) {
  const std::size_t begin = at;
  at = std::min(pattern.find_first_not_of('*', at), pattern.size());
  const std::string_view rest = pattern.substr(at);
  const bool is_begin = begin == first || pattern[begin - 1] == '/';
  const bool is_end = rest.empty() || rest.starts_with('/') || rest.starts_with("\\/");
  if (!in_paths || at - begin < 2 || !is_begin || !is_end) {
    tokens_.push_back({Kind::kName, 0, 0});
    return;
  }
  if (rest.starts_with('/')) tokens_.push_back({Kind::kMaybePath, 0, 0});
  tokens_.push_back({Kind::kPath, 0, 0});
}

/// From the '[' on; false: it is not closed, or names a class that is none.
bool IgnorePattern::add_set(std::string_view pattern, std::size_t& at) {
  Set set;
  ++at;
  const bool is_negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (is_negated) ++at;
  int before = -1;  // what a '-' would begin a range with
  for (bool is_first = true; at < pattern.size() && (is_first || pattern[at] != ']');
       is_first = false, ++at) {
    std::uint8_t byte = byte_at(pattern, at);
    if (byte == '-' && before >= 0 && at + 1 < pattern.size() && pattern[at + 1] != ']') {
      if (pattern[++at] == '\\' && ++at == pattern.size()) return false;
      for (int each = before; each <= byte_at(pattern, at); ++each)
        set.set(static_cast<std::size_t>(each));
      before = -1;
      continue;
    }
    if (byte == '[' && at + 1 < pattern.size() && pattern[at + 1] == ':') {
      const std::size_t close = pattern.find(']', at + 2);
      if (close == std::string_view::npos) return false;
      if (close > at + 2 && pattern[close - 1] == ':') {
        const std::string_view name = pattern.substr(at + 2, close - at - 3);
        const auto* found =
            std::find_if(kByteClasses.begin(), kByteClasses.end(),
                         [&](const ByteClass& known) { return known.name == name; });
        if (found == kByteClasses.end()) return false;
        for (int each = 0; each < 256; ++each)
          if (found->has(each)) set.set(static_cast<std::size_t>(each));
        at = close;
        before = -1;
        continue;
      }
    }
    if (byte == '\\') {
      if (++at == pattern.size()) return false;
      byte = byte_at(pattern, at);
    }
    set.set(byte);
    before = byte;
  }
  if (at >= pattern.size()) return false;
  ++at;
  sets_.push_back(is_negated ? ~set : set);
  tokens_.push_back({Kind::kSet, 0, sets_.size() - 1});
  return true;
}

bool IgnorePattern::takes(const Token& token, std::uint8_t byte) const {
  switch (token.kind) {
    case Kind::kByte: return token.byte == byte;
    case Kind::kSet: return sets_[token.set].test(byte);
    case Kind::kName: return byte != '/';
    case Kind::kPath: return true;
    case Kind::kMaybePath: return false;
  }
  return false;
}

/// Marks that a match may have come as far as this, and what it may continue with unread.
void IgnorePattern::enter(std::size_t place, std::vector<std::uint8_t>& places) const {
  while (place <= tokens_.size() && !places[place]) {
    places[place] = 1;
    if (place == tokens_.size()) return;
    const Kind kind = tokens_[place].kind;
    if (kind == Kind::kMaybePath) enter(place + 3, places);
    if (kind == Kind::kByte || kind == Kind::kSet) return;
    ++place;
  }
}

bool IgnorePattern::matches(std::string_view text) const {
  if (malformed_ || text.size() < plain_) return false;
  for (std::size_t i = 0; i < plain_; ++i) {
    if (byte_at(text, i) != tokens_[i].byte) return false;
  }
  if (plain_ == tokens_.size()) return text.size() == plain_;
  // The places that a match can have come to, after each byte.
  std::vector<std::uint8_t> now(tokens_.size() + 1), next(tokens_.size() + 1);
  enter(plain_, now);
  for (const char c : text.substr(plain_)) {
    const auto byte = static_cast<std::uint8_t>(c);
    std::fill(next.begin(), next.end(), 0);
    bool goes_on = false;
    for (std::size_t place = plain_; place < tokens_.size(); ++place) {
      if (!now[place] || !takes(tokens_[place], byte)) continue;
      const Kind kind = tokens_[place].kind;
      enter(kind == Kind::kByte || kind == Kind::kSet ? place + 1 : place, next);
      goes_on = true;
    }
    if (!goes_on) return false;
    std::swap(now, next);
  }
  return now[tokens_.size()] != 0;
}

// -- The lines of a file

IgnoreRules::IgnoreRules(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && line.front() != '#') add(without_last_blanks(line));
  }
}

void IgnoreRules::add(std::string_view line) {
  const bool takes_back = line.starts_with('!');
  if (takes_back) line.remove_prefix(1);
  const bool folders_only = line.ends_with('/');
  if (folders_only) line.remove_suffix(1);
  const bool in_paths = line.find('/') != std::string_view::npos;
  if (line.starts_with('/')) line.remove_prefix(1);
  if (!line.empty())
    rules_.push_back({IgnorePattern(line, in_paths), takes_back, in_paths, folders_only});
}

std::optional<bool> IgnoreRules::ignores(std::string_view path, bool is_folder) const {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (rule->folders_only && !is_folder) continue;
    if (rule->pattern.matches(rule->in_paths ? path : name)) return !rule->takes_back;
  }
  return std::nullopt;
}

}  // namespace runtime
