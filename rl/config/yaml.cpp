#include "rl/config/yaml.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <optional>
#include <set>

#include "rl/config/override.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

constexpr std::size_t kFileBytesMax = 4 << 20;
constexpr int kYamlDepthMax = 64;
constexpr int kValuesMax = 100'000;  // aliases can multiply a small file

/// A word without quotes.
ordered_json plain_scalar(const std::string& word) {
  static const std::set<std::string> nulls = {"", "~", "null", "Null", "NULL"};
  static const std::set<std::string> trues = {"true", "True", "TRUE", "yes", "Yes",
                                              "YES",  "on",   "On",   "ON"};
  static const std::set<std::string> falses = {"false", "False", "FALSE", "no", "No",
                                               "NO",    "off",   "Off",   "OFF"};
  if (nulls.contains(word)) return nullptr;
  if (trues.contains(word)) return true;
  if (falses.contains(word)) return false;
  if (word == ".inf" || word == "+.inf") return std::numeric_limits<double>::infinity();
  if (word == "-.inf") return -std::numeric_limits<double>::infinity();
  if (word == ".nan") return std::numeric_limits<double>::quiet_NaN();
  if (word.find_first_of("0123456789") == std::string::npos)
    return word;  // "nan" is a word in YAML
  return parse_plain_scalar(word);
}

class YamlFlattener {
 public:
  explicit YamlFlattener(std::string_view name) : name_(name) {}

  Status map(const YAML::Node& node, const std::string& prefix, int depth) {
    if (depth > kYamlDepthMax) return error(node, "nested deeper than 64");
    std::set<std::string> seen;
    for (const auto& member :
         node) {  // a merged mapping comes first, so that the keys next to it win
      if (!member.first.IsScalar() || member.first.Scalar() != "<<") continue;
      const bool several = member.second.IsSequence();
      for (std::size_t i = 0; i < (several ? member.second.size() : 1); ++i) {
        const YAML::Node source = several ? member.second[i] : member.second;
        if (!source.IsMap()) return error(source, "'<<' takes a mapping");
        const Status status = map(source, prefix, depth + 1);
        if (!status.ok()) return status;
      }
    }
    for (const auto& member : node) {
      if (!member.first.IsScalar()) return error(member.first, "a key must be a word");
      const std::string& key = member.first.Scalar();
      if (key == "<<") continue;
      if (!seen.insert(key).second)
        return error(member.first, "the key '" + key + "' occurs twice");
      const std::string path = prefix.empty() ? key : prefix + "." + key;
      if (member.second.IsMap() && member.second.size() > 0) {
        const Status status = map(member.second, path, depth + 1);
        if (!status.ok()) return status;
        continue;
      }
      Result<ordered_json> item = value(member.second, depth + 1);
      if (!item.ok()) return item.status();
      entries_.push_back({path, std::move(item).value(), member.first.Mark().line + 1});
    }
    return Status();
  }

  Result<ordered_json> value(const YAML::Node& node, int depth) {
    if (depth > kYamlDepthMax) return error(node, "nested deeper than 64");
    if (++values_ > kValuesMax) return error(node, "more than 100000 values");
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null: return ordered_json(nullptr);
      case YAML::NodeType::Scalar:
        if (node.Tag() == "?")
          return plain_scalar(node.Scalar());  // yaml-cpp's tag for a plain, untagged scalar
        if (node.Tag().empty() || node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str")
          return ordered_json(node.Scalar());
        return error(node, "the tag " + node.Tag() + " is not supported");
      case YAML::NodeType::Sequence: {
        ordered_json items = ordered_json::array();
        for (const auto& child : node) {
          Result<ordered_json> item = value(child, depth + 1);
          if (!item.ok()) return item;
          items.push_back(std::move(item).value());
        }
        return items;
      }
      case YAML::NodeType::Map: {
        ordered_json members = ordered_json::object();
        for (const auto& member : node) {
          if (!member.first.IsScalar()) return error(member.first, "a key must be a word");
          Result<ordered_json> item = value(member.second, depth + 1);
          if (!item.ok()) return item;
          members[member.first.Scalar()] = std::move(item).value();
        }
        return members;
      }
    }
    return error(node, "not understood");
  }

  std::vector<YamlEntry> take() { return std::move(entries_); }

 private:
  Status error(const YAML::Node& node, const std::string& what) const {
    return invalid_argument(name_ + ":" + std::to_string(node.Mark().line + 1) + ": " + what);
  }

  std::string name_;
  std::vector<YamlEntry> entries_;
  int values_ = 0;
};

void emit(YAML::Emitter& out, const ordered_json& value) {
  switch (value.type()) {
    case ordered_json::value_t::object:
      if (value.empty()) {
        out << YAML::Flow << YAML::BeginMap << YAML::EndMap;
        return;
      }
      out << YAML::BeginMap;
      for (const auto& [key, child] : value.items()) {
        out << YAML::Key << key << YAML::Value;
        emit(out, child);
      }
      out << YAML::EndMap;
      return;
    case ordered_json::value_t::array:
      out << YAML::Flow << YAML::BeginSeq;
      for (const ordered_json& child : value) emit(out, child);
      out << YAML::EndSeq;
      return;
    case ordered_json::value_t::string: {
      // Quoted where a reader would take it for something else.
      const std::string& text = value.get_ref<const std::string&>();
      if (plain_scalar(text).is_string()) {
        out << text;
      } else {
        out << YAML::DoubleQuoted << text;
      }
      return;
    }
    case ordered_json::value_t::null: out << YAML::Null; return;
    case ordered_json::value_t::number_float: {
      const double number = value.get<double>();
      if (number != number) {
        out << ".nan";
      } else if (number == std::numeric_limits<double>::infinity() ||
                 number == -std::numeric_limits<double>::infinity()) {
        out << (number > 0 ? ".inf" : "-.inf");
      } else {
        out << value.dump();
      }
      return;
    }
    default: out << value.dump();
  }
}

}  // namespace

namespace {

// The line of a marker that has a document before and behind it. By text, since a marker is one
// wherever it stands, and yaml-cpp's LoadAll does not end on some damaged files.
std::optional<int> second_document(std::string_view text) {
  bool has_content = false;
  std::optional<int> marker;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("---") && (line.size() == 3 || line.find_first_of(" \t\r", 3) == 3)) {
      if (has_content) marker = number + 1;
      line.remove_prefix(3);
    }
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || line[first] == '#') continue;
    if (line.front() == '%' && (!has_content || marker)) continue;  // a directive
    if (marker) return marker;
    has_content = true;
  }
  return std::nullopt;
}

// What a text is, by a function of its root and the flattener, which knows how values read.
template <class T, class Read>
Result<T> load_yaml(const std::string& text, std::string_view name, const Read& read) {
  if (text.size() > kFileBytesMax)
    return invalid_argument(std::string(name) + ": larger than 4 MiB, which no configuration is");
  if (text.find('\0') != std::string::npos)
    return invalid_argument(std::string(name) + ": not a text in UTF-8");
  try {
    if (const std::optional<int> line = second_document(text)) {
      return invalid_argument(std::string(name) + ":" + std::to_string(*line) +
                              ": a second document begins with this '---', and one is read: leave "
                              "the line out, or put what follows into a separate file");
    }
    const YAML::Node root = YAML::Load(text);
    YamlFlattener flattener(name);
    return read(root, flattener);
  } catch (const YAML::Exception& exception) {
    return invalid_argument(std::string(name) + ":" + std::to_string(exception.mark.line + 1) +
                            ": " + exception.msg);
  }
}

Result<std::string> text_of(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    return runtime::errno_status(EISDIR, "configuration file " + file.string());
  std::ifstream in(file, std::ios::binary);
  if (!in) return runtime::errno_status(errno, "configuration file " + file.string());
  std::string text(kFileBytesMax + 1,
                   '\0');  // a file that is larger is refused, and need not be read
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return invalid_argument("configuration file " + file.string() + ": cannot be read");
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace

Result<std::vector<YamlEntry>> parse_yaml(const std::string& text, std::string_view name) {
  return load_yaml<std::vector<YamlEntry>>(
      text, name,
      [&](const YAML::Node& root, YamlFlattener& flattener) -> Result<std::vector<YamlEntry>> {
        if (root.IsNull() || !root.IsDefined()) return flattener.take();
        if (!root.IsMap())
          return invalid_argument(std::string(name) +
                                  ": a configuration is a mapping of keys to values");
        const Status status = flattener.map(root, "", 0);
        if (!status.ok()) return status;
        return flattener.take();
      });
}

Result<std::vector<YamlEntry>> read_yaml_file(const std::filesystem::path& file) {
  const Result<std::string> text = text_of(file);
  return text.ok() ? parse_yaml(*text, file.string()) : text.status();
}

Result<ordered_json> read_yaml_list(const std::filesystem::path& file) {
  const Result<std::string> text = text_of(file);
  if (!text.ok()) return text.status();
  return load_yaml<ordered_json>(
      *text, file.string(),
      [&](const YAML::Node& root, YamlFlattener& flattener) -> Result<ordered_json> {
        if (!root.IsSequence())
          return invalid_argument(file.string() +
                                  ": a list is expected, whose entries begin with '- '");
        return flattener.value(root, 0);
      });
}

std::string write_yaml(const ordered_json& tree) {
  YAML::Emitter out;
  emit(out, tree);
  return std::string(out.c_str()) + "\n";
}

}  // namespace rl
