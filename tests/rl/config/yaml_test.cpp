#include "rl/config/yaml.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace rl {
namespace {

std::string value_of_scalar(const std::string& scalar) {
  const auto entries = parse_yaml("k: " + scalar + "\n", "t.yaml");
  return entries.ok() && entries->size() == 1 ? entries->front().value.dump() : "error";
}

std::string yaml_complaint(const std::string& text) {
  const auto entries = parse_yaml(text, "t.yaml");
  return entries.ok() ? "" : entries.status().message();
}

// As PyYAML reads them, with OmegaConf's numbers.
TEST(Yaml, ReadsScalars) {
  const std::pair<const char*, const char*> cases[] = {
      {"1", "1"},           {"-2", "-2"},
      {"1.5", "1.5"},       {"1e-6", "1e-06"},
      {"true", "true"},     {"Yes", "true"},
      {"off", "false"},     {"null", "null"},
      {"~", "null"},        {"", "null"},
      {"'1'", "\"1\""},     {"\"on\"", "\"on\""},
      {"None", "\"None\""}, {"nan", "\"nan\""},
      {"a b", "\"a b\""},   {"[1, a, [x]]", "[1,\"a\",[\"x\"]]"},
      {"!!str 5", "\"5\""}, {"[]", "[]"},
      {"{}", "{}"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(value_of_scalar(text), expected) << text;
}

TEST(Yaml, TakesDictionariesApartWithLines) {
  const auto entries = parse_yaml("a:\n  b: 1\n  c:\n    d: [x]\ne.f: 2\n", "t.yaml");
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].key, "a.b");
  EXPECT_EQ((*entries)[0].line, 2);
  EXPECT_EQ((*entries)[1].key, "a.c.d");
  EXPECT_EQ((*entries)[1].line, 4);
  EXPECT_EQ((*entries)[2].key, "e.f");
}

TEST(Yaml, MergesAnchors) {
  const auto entries = parse_yaml("base: &b\n  x: 1\n  y: 2\nuse:\n  <<: *b\n  y: 3\n", "t.yaml");
  ASSERT_TRUE(entries.ok());
  std::map<std::string, int> last;
  for (const YamlEntry& entry : *entries) last[entry.key] = entry.value.get<int>();
  EXPECT_EQ(last["use.x"], 1);
  EXPECT_EQ(last["use.y"], 3);
}

TEST(Yaml, RefusesDamagedFilesByLine) {
  EXPECT_EQ(yaml_complaint("a: 1\nb: [1\n").substr(0, 9), "t.yaml:3:");
  EXPECT_EQ(yaml_complaint("a: 1\nb: 2\na: 3\n"), "t.yaml:3: the key 'a' occurs twice");
  EXPECT_EQ(yaml_complaint("- 1\n- 2\n"), "t.yaml: a configuration is a mapping of keys to values");
  EXPECT_EQ(yaml_complaint("a: !python/object x\n"),
            "t.yaml:1: the tag !python/object is not supported");
  EXPECT_EQ(yaml_complaint(""), "");
  EXPECT_NE(yaml_complaint("a: 1\n---\nb: 2\n").find("t.yaml:2: a second document begins"),
            std::string::npos);
  EXPECT_EQ(yaml_complaint("# text\n---\na: 1\n--- # and no more\n"), "");
  EXPECT_EQ(yaml_complaint(std::string("\xFF\xFE"
                                       "a\0:\0",
                                       6)),
            "t.yaml: not a text in UTF-8");
  EXPECT_NE(read_yaml_file("/tmp").status().message().find("/tmp"), std::string::npos);
  EXPECT_EQ(read_yaml_file("/nonexistent/x.yaml").status().code(), runtime::ErrorCode::kNotFound);
}

TEST(Yaml, AliasesThatMultiplyAreRefused) {
  std::string text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 0; k < 9; ++k) text += "," + before;
    text += "]\n";
  }
  EXPECT_NE(yaml_complaint(text).find("more than 100000 values"), std::string::npos);
}

}  // namespace
}  // namespace rl
