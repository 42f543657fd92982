// Rare features of templates, compared with Jinja2: numbers beyond 64 bits, macros with any number
// of arguments, filters' rarer arguments; make_corners.py records it.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "rl/template/template.h"

namespace rl {
namespace {

using nlohmann::ordered_json;

TEST(TemplateCorners, EqualJinjas) {
  std::ifstream file(STARLING_SOURCE_DIR "/tests/rl/template/corner_cases.json");
  const ordered_json all = ordered_json::parse(file);
  const ordered_json variables = parse_template_variables(all.at("raw").get<std::string>());
  ASSERT_TRUE(variables.is_object());
  int compared = 0;
  for (const ordered_json& item : all.at("cases")) {
    const auto parsed = ChatTemplate::parse(item.at("template").get<std::string>());
    ASSERT_TRUE(parsed.ok()) << item.at("template") << ": " << parsed.status().to_string();
    const auto text = parsed->render(variables);
    EXPECT_EQ(text.ok() ? *text : "error", item.value("text", "error"))
        << item.at("template") << ": " << text.status().to_string();
    ++compared;
  }
  EXPECT_GT(compared, 40);
}

std::string rendered_or_error(const std::string& source,
                              const ordered_json& variables = ordered_json::object()) {
  const auto parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) return parsed.status().to_string();
  const auto text = parsed->render(variables);
  return text.ok() ? *text : text.status().message();
}

TEST(TemplateCorners, ArithmeticBeyond64BitsIsRefusedByName) {
  for (const char* source :
       {"{{ x + 1 }}", "{{ 2 * x }}", "{{ x / 2 }}", "{{ x % 10 }}", "{{ x|round }}",
        "{{ [x, 1]|sum }}", "{{ 9223372036854775807 + 1 }}"}) {
    EXPECT_EQ(rendered_or_error(source, {{"x", 18446744073709551615u}}),
              "OverflowError: integer beyond 64 bits")
        << source;
  }
  EXPECT_EQ(rendered_or_error("{{ x + 'a' }}", {{"x", 18446744073709551615u}}),
            "TypeError: unsupported operand type(s) for +: 'int' and 'str'");
}

TEST(TemplateVariables, AreReadAsJsonIsButForLargeIntegers) {
  const std::string text = R"({"a": [1, -2, 1.5, 1e3, true, null, "x"], "b": {}})";
  EXPECT_EQ(parse_template_variables(text), ordered_json::parse(text));
  EXPECT_TRUE(parse_template_variables("{\"a\": ").is_discarded());
  EXPECT_TRUE(parse_template_variables("{} x").is_discarded());
  EXPECT_EQ(rendered_or_error(
                "{{ a }} {{ b }}",
                parse_template_variables(R"({"a": 100000000000000000000000, "b": 1.0E+30})")),
            "100000000000000000000000 1e+30");
}

TEST(TemplateCorners, RefusalsNameTheirLine) {
  EXPECT_EQ(rendered_or_error("\n{{ 0xffffffffffffffffff }}"),
            "unimplemented: line 2: the number 0xffffffffffffffffff is not supported");
}

}  // namespace
}  // namespace rl
