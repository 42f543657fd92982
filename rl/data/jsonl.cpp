#include "rl/data/jsonl.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

constexpr int kDepthMax = 100;  // nested JSON

std::string type_name(const ordered_json& value) {
  switch (value.type()) {
    case ordered_json::value_t::object: return "an object";
    case ordered_json::value_t::array: return "a list";
    case ordered_json::value_t::string: return "a string";
    case ordered_json::value_t::null: return "null";
    case ordered_json::value_t::boolean: return "true or false";
    default: return "a number";
  }
}

std::string list_keys(const ordered_json& object) {
  std::string names;
  for (const auto& [key, value] : object.items()) {
    if (names.size() > 200) return names + ", ...";
    names += (names.empty() ? "'" : ", '") + key + "'";
  }
  return names.empty() ? "no keys" : names;
}

/// A text, or another value in its JSON form: a ground truth of 42 is as good as "42".
std::string as_text(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

Status check_messages(const ordered_json& messages, const std::string& at) {
  if (messages.empty()) return invalid_argument(at + " is an empty list of messages");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const ordered_json& message = messages[i];
    const std::string which = at + ": message " + std::to_string(i + 1);
    if (!message.is_object()) return invalid_argument(which + " must be an object with role and content, it is " + type_name(message));
    if (!message.contains("role") || !message.at("role").is_string()) return invalid_argument(which + " has no 'role'");
    if (!message.contains("content") && !message.contains("tool_calls")) return invalid_argument(which + " has no 'content'");
  }
  return Status();
}

std::string expand_home(const std::string& file) {
  const char* home = std::getenv("HOME");
  return file.starts_with("~/") && home != nullptr ? std::string(home) + file.substr(1) : file;
}

std::string find_ground_truth(const ordered_json& object) {
  if (object.contains("reward_model") && object.at("reward_model").is_object() && object.at("reward_model").contains("ground_truth")) {
    return as_text(object.at("reward_model").at("ground_truth"));
  }
  for (const char* key : {"ground_truth", "answer", "solution", "target"}) {
    if (object.contains(key)) return as_text(object.at(key));
  }
  return "";
}

}  // namespace

Result<DataRow> parse_row(std::string_view line, const std::string& prompt_key, const std::string& where) {
  // A callback that counts depth keeps a line of a million brackets from exhausting the stack when the value is destroyed.
  bool too_deep = false;
  const auto limit_depth = [&too_deep](int depth, ordered_json::parse_event_t, ordered_json&) {
    too_deep = too_deep || depth > kDepthMax;
    return !too_deep;
  };
  ordered_json object;
  try {
    object = ordered_json::parse(line, limit_depth);
  } catch (const ordered_json::exception& exception) {
    const std::string what = exception.what();
    const std::size_t at = what.find("] ");
    return invalid_argument(where + ": not JSON: " + (at == std::string::npos ? what : what.substr(at + 2)));
  }
  if (too_deep) return invalid_argument(where + ": nested deeper than " + std::to_string(kDepthMax));
  if (!object.is_object()) return invalid_argument(where + ": a row must be an object, it is " + type_name(object));
  if (!object.contains(prompt_key)) {
    return invalid_argument(where + ": no key '" + prompt_key + "' (data.prompt_key); it has " + list_keys(object));
  }
  DataRow row;
  row.where = where;
  row.prompt = object.at(prompt_key);
  if (row.prompt.is_array()) {
    const Status status = check_messages(row.prompt, where + ": '" + prompt_key + "'");
    if (!status.ok()) return status;
  } else if (!row.prompt.is_string()) {
    return invalid_argument(where + ": '" + prompt_key + "' must be a text or a list of messages, it is " + type_name(row.prompt));
  }
  row.ground_truth = find_ground_truth(object);
  if (object.contains("data_source")) row.data_source = as_text(object.at("data_source"));
  if (object.contains("extra_info")) row.extra = object.at("extra_info");
  if (object.contains("response")) {
    if (!object.at("response").is_string())
      return invalid_argument(where + ": 'response' must be a text, it is " + type_name(object.at("response")));
    row.response = object.at("response").get<std::string>();
  }
  return row;
}

Status read_jsonl(const std::string& file, const DatasetOptions& options, std::vector<DataRow>& rows) {
  const std::filesystem::path path = expand_home(file);
  for (const char* other : {".parquet", ".arrow", ".csv"}) {
    if (path.extension() == other) return runtime::unimplemented(file + ": " + other + " files are not read yet: convert it to JSONL");
  }
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return invalid_argument("data file " + path.string() + ": is a folder");
  std::ifstream in(path, std::ios::binary);
  if (!in) return runtime::errno_status(errno, "data file " + path.string());
  std::string line;
  for (std::int64_t number = 1; std::getline(in, line); ++number) {
    const std::string where = file + ":" + std::to_string(number);
    if (line.size() > options.line_bytes_max)
      return invalid_argument(where + ": longer than " + std::to_string(options.line_bytes_max) + " bytes");
    if (number == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);  // byte order mark
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Result<DataRow> row = parse_row(line, options.prompt_key, where);
    if (!row.ok()) return row.status();
    rows.push_back(std::move(row).value());
    if (options.rows_max >= 0 && static_cast<std::int64_t>(rows.size()) >= options.rows_max) return Status();
  }
  if (in.bad()) return runtime::errno_status(errno, "data file " + path.string());
  return Status();
}

}  // namespace rl
