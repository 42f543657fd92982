#include "rl/template/template.h"
#include "tests/rl/fixture_counts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

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
  std::ifstream file(STARLING_SOURCE_DIR "/tests/rl/template/cases.json");
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

// Templates in the styles that published models ship; make_styles.py records what
// transformers renders.
TEST(ChatTemplate, RendersTheStylesOfPublishedTemplates) {
  std::ifstream file(STARLING_SOURCE_DIR "/tests/rl/template/style_cases.json");
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
  for (const char* large : {"{{ '%1000000000d' % 1 }}", "{{ '%.1000000000f' % 1 }}",
                            "{{ '%99999999999999999999999s' % 1 }}", "{{ '%.101f' % 1 }}"})
    EXPECT_EQ(outcome(large).code(), ErrorCode::kResourceExhausted) << large;
  EXPECT_EQ(outcome("{{ '%d' % 1e300 }}").message(), "OverflowError: integer beyond 64 bits");
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

TEST(ChatTemplate, FormatsCountCharactersAndAreNotCutSilently) {
  EXPECT_EQ(render("{{ '%.1s|%3s|%-3s|' % ('éa', 'é', 'é') }}"), "é|  é|é  |");
  EXPECT_EQ(render("{{ ('%.20000s' % ('x' * 30000))|length }}"), "20000");
  EXPECT_EQ(render("{{ ('%20000d' % 1)|length }} {{ '%d' % -2.9 }}"), "20000 -2");
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

// Each of these nests 100,000 deep when nothing stops it: freeing that would exhaust the stack.
TEST(ChatTemplate, ValuesNestedByALoopAreRefused) {
  const auto nested = [](const std::string& start, const std::string& value) {
    return outcome("{% set ns = namespace(d=" + start +
                   ") %}{% for i in range(100000) %}{% set ns.d = " + value + " %}{% endfor %}x")
        .message();
  };
  const std::string why = "RecursionError: a value is nested deeper than 200";
  EXPECT_EQ(nested("[]", "[ns.d]"), why);
  EXPECT_EQ(nested("[]", "(ns.d,)"), why);
  EXPECT_EQ(nested("[]", "{'a': ns.d}"), why);
  EXPECT_EQ(nested("0", "{(ns.d,): 1}"), why);
  EXPECT_EQ(nested("[]", "dict(a=ns.d)"), why);
  EXPECT_EQ(nested("{}", "dict(ns.d, **{'a': ns.d})"), why);
  EXPECT_EQ(nested("[]", "[] + [ns.d]"), why);
  EXPECT_EQ(nested("[]", "[ns.d] * 2"), why);
  EXPECT_EQ(nested("[[]]", "ns.d | batch(1) | list"), why);
  EXPECT_EQ(nested("[[]]", "ns.d | slice(1) | list"), why);
  EXPECT_EQ(nested("{'a': 1}", "{'a': ns.d}.items()"), why);
  EXPECT_EQ(nested("[1]", "[ns.d] | groupby(0)"), why);
  EXPECT_EQ(nested("[]", "[ns.d.copy]"), why) << "a method holds its object";
  EXPECT_EQ(outcome("{% set ns = namespace(d=[]) %}{% for i in range(100000) %}{% for x in [ns.d] "
                    "%}{% set ns.d = [loop] %}{% endfor %}{% endfor %}x")
                .message(),
            why)
      << "a loop holds its items";
}

// What can change after it was put somewhere is freed one by one.
TEST(ChatTemplate, ChainsOfThingsThatChangeAreFreed) {
  EXPECT_EQ(render("{% set ns = namespace(d=0) %}{% for i in range(50000) %}{% set ns.d = "
                   "namespace(d=[ns.d]) %}{% endfor %}x"),
            "x");
  EXPECT_EQ(render("{% set ns = namespace(d=[0]) %}{% for i in range(50000) %}{% for x in [1] %}{% "
                   "set next = [loop] %}{% set _ = loop.changed(ns.d) %}{% set ns.d = next %}{% "
                   "endfor %}{% endfor %}x"),
            "x");
  EXPECT_EQ(render("{% for x in [1] %}{% set _ = loop.changed([loop]) %}{% endfor %}x"), "x");
}

TEST(ChatTemplate, DepthUpToTheLimitIsFine) {
  const auto nested = [](int times) {
    return render("{% set ns = namespace(d=1) %}{% for i in range(" + std::to_string(times) +
                  ") %}{% set ns.d = [ns.d] %}{% endfor %}{{ ns.d | tojson | length }} {{ ns.d | "
                  "string | length }} {{ ns.d == ns.d }}");
  };
  EXPECT_EQ(nested(200), "401 401 True");
  EXPECT_EQ(nested(201), "invalid argument: RecursionError: a value is nested deeper than 200");
}

// Values that share their parts print as more than there is memory for.
TEST(ChatTemplate, ValuesThatPrintAsMoreThanTheyHaveEnd) {
  const std::string doubled =
      "{% set ns = namespace(d=[1]) %}{% for i in range(60) %}{% set ns.d = [ns.d, ns.d] %}{% "
      "endfor %}";
  const std::string alike =
      "{% set ms = namespace(d=[1]) %}{% for i in range(60) %}{% set ms.d = [ms.d, ms.d] %}{% "
      "endfor %}";
  for (const char* use :
       {"{{ ns.d }}", "{{ ns.d | tojson }}", "{{ ns.d == ms.d }}", "{{ ns.d < ms.d }}",
        "{{ '%.0s' % [ns.d] }}", "{{ [ns.d] | unique }}", "{{ [ns.d, ms.d] | sort }}"}) {
    const ErrorCode code = outcome(doubled + alike + use).code();
    EXPECT_TRUE(code == ErrorCode::kResourceExhausted ||
                (std::string_view(use).find("unique") != std::string_view::npos &&
                 code == ErrorCode::kInvalidArgument))
        << use;
  }
  EXPECT_EQ(outcome("{% set s = 'a' * 1000000 %}{{ '%s' * 10000 % ((s,) * 10000) }}").code(),
            ErrorCode::kResourceExhausted);
  std::string joined = "s";
  for (int i = 0; i < 90; ++i) joined += " ~ s";
  EXPECT_EQ(outcome("{% set s = 'a' * 1000000 %}{{ " + joined + " }}").code(),
            ErrorCode::kResourceExhausted);
  EXPECT_EQ(outcome("{{ [[1], [2]] | tojson(indent='a' * 4000000) }}").code(),
            ErrorCode::kResourceExhausted);
}

// A search is as many steps as its text is long. Each line takes minutes to hours where it is one.
TEST(ChatTemplate, LongTextsCountByTheirLength) {
  const std::string texts =
      "{% set s = 'a' * 2000000 %}{% set p = 'a' * 1000000 ~ 'b' %}{% set q = 'b' ~ 'a' * 1000000 "
      "%}";
  EXPECT_EQ(render(texts + "{{ s.count(p) }}"), "0");
  EXPECT_EQ(render(texts + "{{ s.find(p) }} {{ s.rfind(q) }} {{ p in s }}"), "-1 -1 False");
  EXPECT_EQ(render(texts + "{{ s.split(p) | length }} {{ s.rsplit(q) | length }}"), "1 1");
  EXPECT_EQ(render(texts + "{{ s.replace(p, '') == s }} {{ s.partition(p)[1] == '' }} {{ "
                           "s.rpartition(q)[1] == '' }}"),
            "True True True");
  EXPECT_EQ(
      render("{% set s = 'ab ' * 300000 %}{{ s.split() | length }} {{ s.rsplit() | length }}"),
      "300000 300000");
  const std::string set = "{% set s = 'a' * 16000000 %}{% set t = 'a' * 15999999 ~ 'b' %}";
  for (const char* use : {"'b' in s",
                          "s.count('b')",
                          "s.find('b')",
                          "s.rfind('b')",
                          "s.replace('b', '') is none",
                          "s.split('b') is none",
                          "s == t",
                          "s < t",
                          "s.startswith(t)",
                          "{'x': 1}[s]",
                          "s | length",
                          "s[5]",
                          "s[:1]",
                          "s.isalpha()",
                          "s.strip('a')",
                          "s.upper() is none",
                          "s | wordcount",
                          "'x'.join([s]) is none",
                          "'%.0s' % [s]",
                          "s is upper",
                          "[s] | min is none",
                          "s.endswith((t, t))",
                          "s in [t]",
                          "[s].count(t)",
                          "s.partition('b') is none"}) {
    const auto parsed = ChatTemplate::parse(set + "{% for i in range(100000) %}{% set _ = " + use +
                                            " %}{% endfor %}");
    ASSERT_TRUE(parsed.ok()) << use << ": " << parsed.status().to_string();
    const auto text = parsed->render(ordered_json::object());
    EXPECT_EQ(text.status().code(), ErrorCode::kResourceExhausted)
        << use << ": " << text.status().to_string();
  }
  const auto rounds = ChatTemplate::parse(
      set + "{% for i in range(100000) %}{% if 'b' in s %}{% endif %}{% endfor %}");
  ASSERT_TRUE(rounds.ok());
  EXPECT_EQ(rounds->render(ordered_json::object()).status().message(),
            "rendering takes more than 5000000 steps");
}

TEST(ChatTemplate, SearchesAgreeFromBothEnds) {
  const std::string long_part(40, 'x');
  const ordered_json variables = {{"s", "1" + long_part + "2" + long_part + long_part + "3"},
                                  {"p", long_part}};
  EXPECT_EQ(render("{{ s.split(p) }} {{ s.rsplit(p) }} {{ s.rsplit(p, 1)[1] }} {{ s.split(p, 1)[0] "
                   "}} {{ s.count(p) }} {{ s.find(p) }} {{ s.rfind(p) }} {{ s.replace(p, '-', 2) "
                   "| length }} {{ s.rpartition(p)[2] }}",
                   variables),
            "['1', '2', '', '3'] ['1', '2', '', '3'] 3 1 3 1 82 45 3");
  EXPECT_EQ(render("{{ 'aXbXc'.rsplit('X', 1) }} {{ 'aaa'.rsplit('aa') }} {{ ' a  b '.rsplit(none, "
                   "1) }} {{ ' a  b '.split(none, 1) }} {{ 'é ü'.rsplit() }}"),
            "['aXb', 'c'] ['a', ''] [' a', 'b'] ['a', 'b '] ['é', 'ü']");
}

TEST(ChatTemplate, VariablesFromTextAreRefusedWhenDeep) {
  const std::string deep = "{\"x\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_TRUE(parse_template_variables(deep).is_discarded());
  EXPECT_TRUE(parse_template_variables(std::string(100'000, '[')).is_discarded());
  EXPECT_TRUE(parse_template_variables("{\"x\": [[1]]}").is_object());
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
