#include "rl/data/json_text.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/core/json.h"

namespace rl {

using nlohmann::ordered_json;
using runtime::invalid_argument;

namespace {

constexpr int kDepthMax = 100;  // nested JSON

// Builds the value as ordered_json::parse does, with two exceptions. Integers too large for it
// become texts. A key that stands twice in an object is a problem (parse() would keep the last).
class RowReader : public nlohmann::detail::json_sax_dom_parser<ordered_json> {
 public:
  explicit RowReader(ordered_json& into) : json_sax_dom_parser(into, /*allow_exceptions_=*/false) {}

  const std::string& problem() const { return problem_; }

  bool number_float(ordered_json::number_float_t value, const std::string& written) {
    if (written.find_first_of(".eE") != std::string::npos)
      return json_sax_dom_parser::number_float(value, written);
    std::string digits = written;
    return string(digits);
  }
  bool start_object(std::size_t size) {
    keys_.emplace_back();
    return json_sax_dom_parser::start_object(size);
  }
  bool key(std::string& value) {
    if (keys_.back().insert(value).second) return json_sax_dom_parser::key(value);
    problem_ = "the key '" + excerpt(value, kNameBytesMax) + "' occurs twice in an object";
    return false;
  }
  bool end_object() {
    keys_.pop_back();
    return json_sax_dom_parser::end_object();
  }
  template <class Exception>
  bool parse_error(std::size_t, const std::string&, const Exception& exception) {
    const std::string what = exception.what();
    const std::size_t at = what.find("] ");
    problem_ = "not JSON: " + (at == std::string::npos ? what : what.substr(at + 2));
    return false;
  }

 private:
  static constexpr std::size_t kNameBytesMax = 80;

  std::vector<std::unordered_set<std::string>> keys_;  // of the objects that are open
  std::string problem_;
};

}  // namespace

runtime::Result<ordered_json> parse_json_text(std::string_view text, const std::string& where) {
  if (runtime::nests_deeper(text, kDepthMax))
    return invalid_argument(where + ": nested deeper than " + std::to_string(kDepthMax));
  if (text.find('\0') != std::string_view::npos)
    return invalid_argument(where + ": not JSON: it has a NUL byte");
  ordered_json root;
  RowReader reader(root);
  if (!ordered_json::sax_parse(text, &reader))
    return invalid_argument(where + ": " + reader.problem());
  return root;
}

std::string json_type_name(const ordered_json& value) {
  switch (value.type()) {
    case ordered_json::value_t::object: return "an object";
    case ordered_json::value_t::array: return "a list";
    case ordered_json::value_t::string: return "a string";
    case ordered_json::value_t::null: return "null";
    case ordered_json::value_t::boolean: return "true or false";
    default: return "a number";
  }
}

std::string list_json_keys(const ordered_json& object) {
  std::string names;
  for (const auto& [key, value] : object.items()) {
    if (names.size() > 200) return names + ", ...";
    names += (names.empty() ? "'" : ", '") + key + "'";
  }
  return names.empty() ? "no keys" : names;
}

std::string json_line(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string excerpt(std::string_view text, std::size_t bytes) {
  const std::string quoted = json_line(ordered_json(std::string(text.substr(0, bytes))));
  std::string out;
  for (std::size_t i = 1; i + 1 < quoted.size(); ++i) {
    const bool of_quote =
        quoted[i] == '\\' &&
        (quoted[i + 1] == '"' || quoted[i + 1] == '\\');  // which stand for themselves here
    out += quoted[i += of_quote ? 1 : 0];
  }
  return out;
}

std::string json_as_text(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : json_line(value);
}

ordered_json text_as_json(const std::string& text, bool is_json) {
  if (!is_json) return text;
  if (text.empty()) return nullptr;
  ordered_json value = runtime::parse_json<ordered_json>(text);
  return value.is_discarded() ? ordered_json(text) : value;
}

}  // namespace rl
