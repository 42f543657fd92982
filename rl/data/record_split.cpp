#include "rl/data/record_split.h"

#include <algorithm>

namespace rl {
namespace {

using SplitKind = SplitRecord::Kind;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

SplitRecord bad(const char* problem) { return {SplitKind::kBad, 0, 0, 0, problem}; }

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

SplitRecord ended_at(std::size_t begin, std::size_t newline, std::string_view text) {
  const std::size_t end = newline > begin && text[newline - 1] == '\r' ? newline - 1 : newline;
  return {SplitKind::kRecord, begin, end, newline + 1, nullptr};
}

}  // namespace

SplitRecord split_line(std::string_view text, bool last, bool) {
  const std::size_t newline = text.find('\n');
  if (newline != std::string_view::npos) return ended_at(0, newline, text);
  if (!last) return {};
  if (text.empty()) return {SplitKind::kEnd, 0, 0, 0, nullptr};
  return {SplitKind::kRecord, 0, text.size(), text.size(), nullptr};
}

SplitRecord split_json_element(std::string_view text, bool last, bool first) {
  const auto more = [&] {
    return last ? bad("the list is not closed: the file is cut off") : SplitRecord();
  };
  std::size_t at = skip_space(text, 0);
  if (at == text.size()) return more();
  const bool opened = first && text[at] == '[';
  if (!opened && (first || (text[at] != ',' && text[at] != ']')))
    return bad(first ? "not a list" : "a comma or the list's end is missing");
  if (opened || text[at] == ',') {
    const bool comma = !opened;
    at = skip_space(text, at + 1);
    if (at == text.size()) return more();
    if (comma && text[at] == ']') return bad("a row is missing behind a comma");
  }
  if (text[at] == ']') {
    const std::size_t behind = skip_space(text, at + 1);
    if (behind < text.size()) return bad("there is text behind the list's end");
    if (!last) return {};
    return {SplitKind::kEnd, 0, 0, 0, nullptr};
  }
  const std::size_t begin = at;
  std::size_t depth = 0;
  bool in_string = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\')
        ++at;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (depth > 0 && (c == '}' || c == ']')) {
      --depth;
    } else if (depth == 0 && (c == ',' || c == ']' || c == '}')) {
      if (at == begin) return bad("a row is missing before a comma");
      return {SplitKind::kRecord, begin, at, at, nullptr};
    }
  }
  return more();
}

namespace {

// Only a quote that begins a field quotes it: 5" is five inches.
SplitRecord split_fields_line(std::string_view text, bool last, char separator) {
  bool quoted = false, begins = true;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c != '"') continue;
      if (at + 1 == text.size() && !last) return {};
      const bool doubled = at + 1 < text.size() && text[at + 1] == '"';
      quoted = doubled;
      at += doubled ? 1 : 0;
    } else if (c == '"' && begins) {
      quoted = true;
    } else if (c == '\n') {
      return ended_at(0, at, text);
    }
    begins = !quoted && c == separator;
  }
  if (!last) return {};
  if (text.empty()) return {SplitKind::kEnd, 0, 0, 0, nullptr};
  if (quoted) return bad("a quoted field is not closed");
  return {SplitKind::kRecord, 0, text.size(), text.size(), nullptr};
}

}  // namespace

SplitRecord split_csv_line(std::string_view text, bool last, bool) {
  return split_fields_line(text, last, ',');
}

SplitRecord split_tsv_line(std::string_view text, bool last, bool) {
  return split_fields_line(text, last, '\t');
}

runtime::Result<std::vector<std::string>> csv_fields(std::string_view line, char separator) {
  std::vector<std::string> fields;
  for (std::size_t at = 0;;) {
    std::string& field = fields.emplace_back();
    if (at < line.size() && line[at] == '"') {
      for (++at; at < line.size(); ++at) {
        if (line[at] != '"') {
          field += line[at];
        } else if (at + 1 < line.size() && line[at + 1] == '"') {
          field += line[at++];
        } else {
          break;
        }
      }
      if (at >= line.size())
        return runtime::invalid_argument("field " + std::to_string(fields.size()) +
                                         ": its quote is not closed");
      ++at;
      if (at < line.size() && line[at] != separator)
        return runtime::invalid_argument("field " + std::to_string(fields.size()) +
                                         ": text behind its closing quote");
    } else {
      const std::size_t end = std::min(line.find(separator, at), line.size());
      field = line.substr(at, end - at);
      at = end;
    }
    if (at >= line.size()) return fields;
    ++at;  // the separator
  }
}

std::string csv_field(std::string_view text, char separator) {
  const char special[] = {separator, '"', '\n', '\r'};
  const bool padded = !text.empty() && (text.front() == ' ' || text.back() == ' ');
  if (!padded &&
      text.find_first_of(std::string_view(special, sizeof special)) == std::string_view::npos)
    return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace rl
