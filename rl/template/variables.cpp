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
class ExactReader {
 public:
  explicit ExactReader(ordered_json& root) : builder_(root, /*allow_exceptions_=*/false) {}

  bool null() { return builder_.null(); }
  bool boolean(bool value) { return builder_.boolean(value); }
  bool number_integer(ordered_json::number_integer_t value) {
    return builder_.number_integer(value);
  }
  bool number_unsigned(ordered_json::number_unsigned_t value) {
    return builder_.number_unsigned(value);
  }
  bool number_float(ordered_json::number_float_t value, const std::string& written) {
    if (written.find_first_of(".eE") != std::string::npos)
      return builder_.number_float(value, written);
    ordered_json::binary_t digits(
        ordered_json::binary_t::container_type(written.begin(), written.end()));
    return builder_.binary(digits);
  }
  bool string(std::string& value) { return builder_.string(value); }
  bool binary(ordered_json::binary_t& value) { return builder_.binary(value); }
  bool start_object(std::size_t size) { return builder_.start_object(size); }
  bool key(std::string& value) { return builder_.key(value); }
  bool end_object() { return builder_.end_object(); }
  bool start_array(std::size_t size) { return builder_.start_array(size); }
  bool end_array() { return builder_.end_array(); }
  template <class Exception>
  bool parse_error(std::size_t, const std::string&, const Exception&) {
    return false;
  }

 private:
  nlohmann::detail::json_sax_dom_parser<ordered_json> builder_;
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
