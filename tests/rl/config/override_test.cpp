#include "rl/config/override.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rl {
namespace {

using nlohmann::ordered_json;

std::string value_of(const std::string& text) {
  const auto value = parse_override_value(text);
  return value.ok() ? value->dump() : "error";
}

// The expected values are what hydra-core 1.3 makes of the same text.
TEST(Override, ReadsPlainWordsAsHydraDoes) {
  const std::pair<const char*, const char*> cases[] = {
      {"1", "1"},
      {"-1", "-1"},
      {"+7", "7"},
      {"1_000", "1000"},
      {"007", "\"007\""},
      {"1.", "1.0"},
      {".5", "0.5"},
      {"1e-6", "1e-06"},
      {"1E3", "1000.0"},
      {"1__0", "\"1__0\""},
      {"1e", "\"1e\""},
      {"-", "\"-\""},
      {"True", "true"},
      {"falsE", "false"},
      {"null", "null"},
      {"None", "\"None\""},
      {"", "\"\""},
      {" ", "\"\""},
      {"a b  c ", "\"a b  c\""},
      {"a : b", "\"a : b\""},
      {"http://x.y/z", "\"http://x.y/z\""},
      {"0x10", "\"0x10\""},
      {"1 2", "\"1 2\""},
      {"-foo", "\"-foo\""},
      {"50%", "\"50%\""},
      {"$x", "\"$x\""},
      {"a@b", "\"a@b\""},
      {"true x", "\"true x\""},
      {"-0", "0"},
      {"00", "\"00\""},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(value_of(text), expected) << text;
  EXPECT_TRUE(std::isinf(parse_override_value("-INF")->get<double>()));
  EXPECT_TRUE(std::isnan(parse_override_value("nan")->get<double>()));
  EXPECT_EQ(parse_override_value("10000000000000000000000")->get<double>(), 1e22);
}

TEST(Override, ReadsQuotesAndEscapesAsHydraDoes) {
  const std::pair<const char*, const char*> cases[] = {
      {"'a,b'", "a,b"},
      {R"('it\'s')", "it's"},
      {R"("say \"x\"")", "say \"x\""},
      {R"('a\\')", "a\\"},
      {R"('a\b')", "a\\b"},
      {R"('a\\\\b')", R"(a\\\\b)"},
      {"'1'", "1"},
      {"''", ""},
      {R"(a\,b)", "a,b"},
      {R"(a\ )", "a "},
      {R"(\\)", "\\"},
      {R"(a\nb)", R"(a\nb)"},
      {R"(\[x\])", "[x]"},
      {R"(a\=b)", "a=b"},
      {"'${a}'", "${a}"},
      {"x/${a}/y", "x/${a}/y"},
      {"${oc.env:HOME,/tmp}", "${oc.env:HOME,/tmp}"},
  };
  for (const auto& [text, expected] : cases) {
    const auto value = parse_override_value(text);
    ASSERT_TRUE(value.ok()) << text << ": " << value.status().to_string();
    EXPECT_EQ(*value, ordered_json(expected)) << text;
  }
}

TEST(Override, ReadsListsAndDictionaries) {
  EXPECT_EQ(value_of("[]"), "[]");
  EXPECT_EQ(value_of("[ 1, 2,a b ]"), R"([1,2,"a b"])");
  EXPECT_EQ(value_of("[a,[b,{c:1}],'d,e']"), R"(["a",["b",{"c":1}],"d,e"])");
  EXPECT_EQ(value_of("{a: 1, b : {c: null}}"), R"({"a":1,"b":{"c":null}})");
  EXPECT_EQ(value_of("{a b:1,1:2}"), R"({"a b":1,"1":2})");
  EXPECT_EQ(value_of("{a:1,a:2}"), R"({"a":2})");
  EXPECT_EQ(value_of("{'a':x}"), R"({"a":"x"})");  // Hydra wants keys without quotes; we take both
}

TEST(Override, RefusesWhatIsNotInTheGrammar) {
  for (const char* text : {"[a,]", "[,a]", "{a}", "{a:}", "[a", "a]", "{a:1", "a=b", "a'b'", "'a'b",
                           "'a", "(x)", "a(b)c", "a{b", "${a"}) {
    EXPECT_EQ(value_of(text), "error") << text;
  }
  EXPECT_EQ(value_of(std::string(100'000, '[')), "error");
}

TEST(Override, AWordBeforeAListNamesIt) {
  EXPECT_EQ(value_of("steps[3,4]"), R"({"steps":[3,4]})");
  for (const char* text :
       {"two words[3]", "3[4]", "a.b[1]", "steps[3", "steps[3]x", "[steps[3]]", "{a: steps[3]}"})
    EXPECT_EQ(value_of(text), "error") << text;
}

TEST(Override, ErrorsSayTheCure) {
  EXPECT_EQ(parse_override("k=a,b").status().message(),
            "override 'k=a,b': at character 2 of the value: a comma outside brackets is a sweep, "
            "which a single run cannot do. Write [a,b] for a list, "
            "or quote the text");
  EXPECT_EQ(parse_override("k=choice(a,b)").status().message(),
            "override 'k=choice(a,b)': at character 7 of the value: the function choice(...) is "
            "not supported: quote the text if it is "
            "meant as text");
  EXPECT_EQ(parse_override("a.b").status().message(),
            "override 'a.b': there is no '=': write key=value (or ~key to delete)");
  EXPECT_EQ(parse_override("group/x=1").status().message(),
            "override 'group/x=1': config groups (group/name, key@package) are not supported: set "
            "the keys themselves");
}

TEST(Override, KnowsTheFourForms) {
  EXPECT_EQ(parse_override("a.b=1")->kind, OverrideKind::kSet);
  EXPECT_EQ(parse_override("+a.b=1")->kind, OverrideKind::kAdd);
  EXPECT_EQ(parse_override("++a.b=1")->kind, OverrideKind::kForceAdd);
  EXPECT_EQ(parse_override("~a.b")->kind, OverrideKind::kDelete);
  EXPECT_FALSE(parse_override("~a.b")->has_value);
  EXPECT_TRUE(parse_override("~a.b=1")->has_value);
  EXPECT_EQ(parse_override("++a.b=[1]")->key, "a.b");
  for (const char* text : {"", "=1", "+", "~", "a..b=1", ".a=1", "a.=1", "a b=1", "+a"})
    EXPECT_FALSE(parse_override(text).ok()) << text;
}

}  // namespace
}  // namespace rl
