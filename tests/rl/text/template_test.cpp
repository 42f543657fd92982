#include "rl/text/template.h"
#include "tests/rl/fixture_counts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::ErrorCode;

std::string render(const std::string& source,
                   const ordered_json& variables = ordered_json::object()) {
  const auto parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) return parsed.status().to_string();
  const auto text = parsed->render(variables);
  return text.ok() ? *text : text.status().to_string();
}

/// The status of parsing, then rendering with little room.
runtime::Status outcome(const std::string& source,
                        const ordered_json& variables = ordered_json::object()) {
  const auto parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) return parsed.status();
  TemplateLimits limits;
  limits.steps_max = 200'000;
  limits.output_bytes_max = 1 << 20;
  limits.work_bytes_max = 8 << 20;
  const auto text = parsed->render(variables, limits);
  return text.ok() ? runtime::Status() : text.status();
}

// Expected texts and errors are what Jinja2 3.1.6 gives in a sandbox set up as transformers does.
TEST(ChatTemplate, AgreesWithJinja2) {
  std::ifstream file(STARLING_SOURCE_DIR "/tests/rl/text/template_cases.json");
  const ordered_json cases = ordered_json::parse(file);
  ASSERT_GT(cases.size(), 400u);
  for (const ordered_json& item : cases) {
    const std::string source = item.at("template");
    const auto parsed = ChatTemplate::parse(source);
    if (item.contains("syntax_error")) {
      EXPECT_FALSE(parsed.ok()) << source;
      continue;
    }
    ASSERT_TRUE(parsed.ok()) << source << ": " << parsed.status().to_string();
    const auto text = parsed->render(item.value("variables", ordered_json::object()));
    if (item.contains("text")) {
      ASSERT_TRUE(text.ok()) << source << ": " << text.status().to_string();
      EXPECT_EQ(*text, item.at("text").get<std::string>()) << source;
    } else {
      ASSERT_FALSE(text.ok()) << source << " gave " << *text;
      EXPECT_EQ(text.status().message(), item.at("error").get<std::string>()) << source;
    }
  }
}

// Templates in the styles that published models ship; make_template_styles.py records what
// transformers renders.
TEST(ChatTemplate, RendersTheStylesOfPublishedTemplates) {
  std::ifstream file(STARLING_SOURCE_DIR "/tests/rl/text/template_style_cases.json");
  const ordered_json all = ordered_json::parse(file);
  int rendered = 0;
  for (const ordered_json& item : all.at("styles")) {
    const auto parsed = ChatTemplate::parse(item.at("template").get<std::string>());
    ASSERT_TRUE(parsed.ok()) << item.at("style") << ": " << parsed.status().to_string();
    for (std::size_t i = 0; i < item.at("expected").size(); ++i) {
      ordered_json variables = all.at("variables");
      variables.update(all.at("changes")[i]);
      const ordered_json& expected = item.at("expected")[i];
      const auto text = parsed->render(variables);
      EXPECT_EQ(text.ok() ? *text : text.status().message(),
                expected.contains("text") ? expected.at("text") : expected.at("error"))
          << item.at("style") << " " << i;
      EXPECT_EQ(text.ok(), expected.contains("text")) << item.at("style") << " " << i;
      ++rendered;
    }
  }
  EXPECT_GT(rendered, 50);
}

// Every published template in the fixtures, equal to what transformers renders, refusals included.
TEST(ChatTemplate, RendersPublishedTemplates) {
  const char* given = std::getenv("STARLING_FIXTURES");
  const std::filesystem::path own =
      given != nullptr ? given : STARLING_SOURCE_DIR "/../shared/fixtures";
  const std::filesystem::path folder = own / "chat_templates";
  if (!std::filesystem::is_directory(folder))
    GTEST_SKIP() << "no published chat templates at " << folder;
  int ran = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    const ordered_json fixture = ordered_json::parse(file);
    const auto parsed = ChatTemplate::parse(fixture.at("template").get<std::string>());
    ASSERT_TRUE(parsed.ok()) << entry.path() << ": " << parsed.status().to_string();
    for (const auto& [name, item] : fixture.at("cases").items()) {
      const auto text = parsed->render(item.at("input"));
      EXPECT_EQ(text.ok() ? *text : text.status().message(),
                item.contains("rendered") ? item.at("rendered") : item.at("error"))
          << entry.path().filename() << " " << name;
      EXPECT_EQ(text.ok(), item.contains("rendered")) << entry.path().filename() << " " << name;
      ++ran;
    }
  }
  testing::count_fixtures("chat_templates", std::to_string(ran) + " conversations");
  EXPECT_GT(ran, 0);
}

TEST(ChatTemplate, NamesWhatIsNotSupportedWithItsLine) {
  EXPECT_EQ(render("a\n{% include 'x' %}"),
            "unimplemented: line 2: the tag 'include' is not supported");
  EXPECT_EQ(render("a\n\n{{ x | urlize }}"),
            "unimplemented: line 3: the filter 'urlize' is not supported");
  EXPECT_EQ(render("{{ 1 is\n  prime }}"),
            "unimplemented: line 2: the test 'prime' is not supported");
  EXPECT_EQ(render("\n{{ 'a'.zfill(3) }}"),
            "unimplemented: line 2: the method 'zfill' of str is not supported");
  EXPECT_EQ(render("{% for a in b recursive %}{% endfor %}"),
            "unimplemented: line 1: a recursive loop is not supported");
  EXPECT_EQ(render("{{ lipsum() }}"),
            "unimplemented: line 1: the function 'lipsum' is not supported");
}

// What Jinja2 3.1 gives.
TEST(ChatTemplate, FiltersAreJinjasNotPythons) {
  EXPECT_EQ(render("{{ 'foo_bar baz-qux (x)' | title }} {{ 'foo_bar'.title() }}"),
            "Foo_bar Baz-Qux (X) Foo_Bar");
  EXPECT_EQ(render("{{ '3.0 is a_b' | wordcount }} {{ [] | wordcount }}"), "4 0");
  EXPECT_EQ(render("{{ 2.675 | round(2) }} {{ 2.5 | round }} {{ 1.25 | round(1) }} {{ 1234.5 | "
                   "round(-2) }}"),
            "2.67 2.0 1.2 1200.0");
  EXPECT_EQ(render("{% for a in [1] %}{% for b in [1] %}{{ loop.depth }}{{ loop.depth0 }}{% endfor "
                   "%}{{ loop.depth }}{% endfor %}"),
            "101");
}

TEST(ChatTemplate, SyntaxErrorsNameTheLine) {
  EXPECT_EQ(render("a\nb\n{% if x %}"),
            "invalid argument: line 3: the template ends where 'endif' is expected");
  EXPECT_EQ(render("a\n{{ 1 + }}"), "invalid argument: line 2: an expression is missing");
  EXPECT_EQ(render("{% frob %}"), "invalid argument: line 1: unknown tag 'frob'");
}

TEST(ChatTemplate, HostileTemplatesEnd) {
  EXPECT_EQ(
      outcome("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}")
          .code(),
      ErrorCode::kResourceExhausted);
  EXPECT_EQ(outcome("{{ 'a' * 10000000000 }}").code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(outcome("{{ [1] * 4000000000000000000 }}").code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(outcome("{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(99) %}{% set ns.x = "
                    "ns.x ~ ns.x %}{% endfor %}")
                .code(),
            ErrorCode::kResourceExhausted);
  EXPECT_EQ(outcome("{% for i in range(90000) %}xxxxxxxxxxxxxxxxxxxxxxxx{% endfor %}").code(),
            ErrorCode::kResourceExhausted);
  EXPECT_EQ(outcome("{{ 'ab'.replace('', 'x' * 1000000).replace('', 'x' * 1000000) }}").code(),
            ErrorCode::kResourceExhausted);
  EXPECT_EQ(outcome("{{ '%9999d' % 1 }}").code(), ErrorCode::kOk);
  EXPECT_EQ(outcome("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}").message(),
            "RecursionError: maximum recursion depth exceeded");
  EXPECT_EQ(outcome("{{ 9223372036854775807 + 1 }}").message(),
            "OverflowError: integer beyond 64 bits");
  EXPECT_FALSE(outcome("{{ " + std::string(100'000, '(') + " }}").ok());
  EXPECT_FALSE(outcome("{{ " + std::string(100'000, '-') + "1 }}").ok());
  EXPECT_FALSE(outcome("{{ 1" + std::string(5'000, '.') + " }}").ok());
  std::string sum = "1", nested;
  for (int i = 0; i < 10'000; ++i) sum += "+1";
  for (int i = 0; i < 10'000; ++i) nested += "{% if 1 %}";
  EXPECT_FALSE(outcome("{{ " + sum + " }}").ok());
  EXPECT_FALSE(outcome(nested).ok());
  EXPECT_FALSE(ChatTemplate::parse(std::string(2 << 20, 'a')).ok());
}

TEST(ChatTemplate, ValuesThatHoldThemselvesAreFreed) {
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.me = ns %}{% macro f() %}{% endmacro %}{% "
                   "set ns.f = f %}ok"),
            "ok");
  EXPECT_EQ(outcome("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}").message(),
            "RecursionError: a value is nested deeper than 200");
}

TEST(ChatTemplate, DeepVariablesAreRefused) {
  ordered_json deep = 1;
  for (int i = 0; i < 500; ++i) deep = ordered_json::array({deep});
  EXPECT_FALSE(outcome("{{ x }}", {{"x", deep}}).ok());
  EXPECT_FALSE(outcome("", ordered_json::array()).ok());
}

TEST(ChatTemplate, StrayBytesPassThrough) {
  EXPECT_EQ(render("\xff{{ 'a\xc3' }}{{ '\xe2\x82' | length }}"),
            "\xff"
            "a\xc3"
            "2");
}

TEST(ChatTemplate, LargeDictionariesKeepOrderAndReplace) {
  ordered_json big = ordered_json::object();
  for (int i = 0; i < 100; ++i) big["k" + std::to_string(99 - i)] = i;
  EXPECT_EQ(render("{{ b.k0 }} {{ b['k99'] }} {{ b.nope is defined }} {{ (b.keys()|list)[0] }} {{ "
                   "dict(b, k0=5).k0 }} {{ dict(b, k0=5)|length }}",
                   {{"b", big}}),
            "99 0 False k99 5 100");
}

}  // namespace
}  // namespace rl
