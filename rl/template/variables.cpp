// Reading a template's variables without losing digits.
#include <string>

#include <nlohmann/json.hpp>

#include "rl/template/template.h"
#include "runtime/core/json.h"

namespace rl {

namespace {

using nlohmann::ordered_json;

// Builds the value as ordered_json::parse does, but for integers too large for it, which it would
// hand on as floating-point numbers.
class ExactReader : public nlohmann::detail::json_sax_dom_parser<ordered_json> {
 public:
  explicit ExactReader(ordered_json& into)
      : json_sax_dom_parser(into, /*allow_exceptions_=*/false) {}

  bool number_float(ordered_json::number_float_t value, const std::string& written) {
    if (written.find_first_of(".eE") != std::string::npos)
      return json_sax_dom_parser::number_float(value, written);
    ordered_json::binary_t digits(
        ordered_json::binary_t::container_type(written.begin(), written.end()));
    return binary(digits);
  }
};

}  // namespace

nlohmann::ordered_json parse_template_variables(std::string_view text) {
  if (!runtime::may_parse_json(text)) return ordered_json(ordered_json::value_t::discarded);
  ordered_json root;
  ExactReader reader(root);
  if (!ordered_json::sax_parse(text, &reader))
    return ordered_json(ordered_json::value_t::discarded);
  return root;
}

}  // namespace rl
