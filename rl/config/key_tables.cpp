#include "rl/config/key_tables.h"

#include <cerrno>
#include <fstream>
#include <map>
#include <sstream>

#include "rl/config/keys.h"
#include "rl/config/number_range.h"

namespace rl {
namespace {

// A table's cell: '|' would end it.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string code(std::string_view text) { return "`" + std::string(text) + "`"; }

// The text in lines of at most 100 columns, those after the first behind `indent`; ends in a
// newline.
std::string wrapped(const std::string& text, const std::string& indent) {
  constexpr std::size_t kColumns = 100;
  std::istringstream words(text);
  std::string lines;
  std::string line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kColumns) {
      lines += line + "\n";
      line = indent + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return lines + line + "\n";
}

std::string used(const KeyTable& keys) {
  std::string text =
      "### Keys that are used\n\n| Key | Default | What it does |\n| --- | --- | --- |\n";
  for (const KeyInfo& row : keys.rows()) {
    if (row.support != KeySupport::kSupported) continue;
    std::string meaning(keys.description(row.key));
    if (const auto range = NumberRange::parse(row.allowed)) {
      meaning += "; " + range->describe();
    } else if (!row.allowed.empty()) {
      meaning += "; one of " + code(row.allowed);
    }
    if (!row.note.empty()) meaning += "; " + std::string(row.note);
    text += "| " + code(row.key) + " | " + (row.has_default() ? code(cell(row.default_text)) : "") +
            " | " + cell(meaning) + " |\n";
  }
  return text + "\n";
}

// Lists keys by reason; keys of one section share a line.
std::string without_effect(const KeyTable& keys) {
  std::map<std::string_view, std::map<std::string_view, std::string>> by_reason;
  for (const KeyInfo& row : keys.rows()) {
    if (row.support != KeySupport::kNoEffect) continue;
    const std::size_t dot = row.key.rfind('.');
    const std::string_view section =
        dot == std::string_view::npos ? std::string_view() : row.key.substr(0, dot);
    std::string& names = by_reason[row.note][section];
    names += (names.empty() ? "" : ", ") +
             code(row.key.substr(dot == std::string_view::npos ? 0 : dot + 1));
    if (row.kind == KeyKind::kMap) names += " (and all below it)";
  }
  std::string text = "### Keys that are accepted without effect\n\n";
  for (const auto& [reason, sections] : by_reason) {
    text += wrapped("**" + std::string(reason) + "**", "") + "\n";
    for (const auto& [section, names] : sections)
      text += wrapped("- " + (section.empty() ? "" : code(section) + ": ") + names, "  ");
    text += "\n";
  }
  return text;
}

std::string refused_keys(const KeyTable& keys) {
  std::string text =
      "### Keys that are refused\n\nTheir defaults pass, and null, and the values of the second "
      "column.\n\n| Key | Also passes | Why |\n| --- | --- | --- |\n";
  for (const KeyInfo& row : keys.rows()) {
    if (row.support != KeySupport::kRefused) continue;
    text += "| " + code(row.key) + " | " + (row.allowed.empty() ? "" : code(cell(row.allowed))) +
            " | " + cell(row.note) + " |\n";
  }
  return text + "\n";
}

std::string older_names(const KeyTable& keys) {
  std::string text = "### Older names\n\n| Name | Stands for |\n| --- | --- |\n";
  for (const KeyAlias& alias : keys.aliases()) {
    const char* rest = alias.old_name.ends_with('.') ? "*" : "";
    text += "| " + code(std::string(alias.old_name) + rest) + " | " +
            code(std::string(alias.name) + rest) + " |\n";
  }
  return text + "\n";
}

}  // namespace

std::string tables_begin(const KeyTable& keys) {
  const std::string command(keys.command());
  return "<!-- made by `starling " + command + " --write-tables docs/guide/" +
         (command == "train" ? "verl" : "stages") + ".md` -->\n";
}

std::string key_tables(const KeyTable& keys) {
  return used(keys) + without_effect(keys) + refused_keys(keys) + older_names(keys);
}

runtime::Status write_key_tables(const std::filesystem::path& page, const KeyTable& keys) {
  std::ifstream in(page);
  std::ostringstream read;
  if (!in || !(read << in.rdbuf())) return runtime::errno_status(errno, page.string());
  std::string text = read.str();
  const std::string mark = tables_begin(keys);
  const std::size_t begin = text.find(mark);
  const std::size_t end = text.find(kTablesEnd, begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || end == std::string::npos) {
    return runtime::invalid_argument(page.string() +
                                     ": the lines that the tables go between are not there");
  }
  const std::size_t first = begin + mark.size();
  text.replace(first, end - first, "\n" + key_tables(keys));
  std::ofstream out(page, std::ios::trunc);
  out << text;
  out.close();
  return out ? runtime::Status() : runtime::errno_status(errno, page.string());
}

}  // namespace rl
