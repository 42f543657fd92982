// References in a tree of values. What a configuration does with them is in config_test.cpp.
#include "rl/config/references.h"

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using nlohmann::ordered_json;

// The tree is JSON.
runtime::Result<ordered_json> resolved(const std::string& tree) {
  return resolve_references(ordered_json::parse(tree));
}

void expect_unresolved(const std::string& tree, const std::vector<std::string>& parts) {
  support::expect_failure(resolved(tree).status(), runtime::ErrorCode::kInvalidArgument, parts);
}

TEST(References, AloneAValueKeepsItsTypeAndInATextItReadsAsInPython) {
  const auto tree = resolved(R"({"on": true, "none": null, "list": [1, "two"],
                                 "alone": "${list}", "text": "${on}-${none}-${list}"})");
  ASSERT_TRUE(tree.ok()) << tree.status().to_string();
  EXPECT_EQ((*tree)["alone"], ordered_json::array({1, "two"}));
  EXPECT_EQ((*tree)["text"], "True-None-[1,\"two\"]");
}

TEST(References, EachFurtherDotIsOneSectionUp) {
  const auto tree = resolved(R"({"x": 1, "a": {"x": 2, "b": {"x": 3, "own": "${.x}",
                                 "outer": "${..x}", "top": "${...x}", "same": "${x}"}}})");
  ASSERT_TRUE(tree.ok()) << tree.status().to_string();
  const ordered_json& inner = (*tree)["a"]["b"];
  EXPECT_EQ(inner["own"], 3);
  EXPECT_EQ(inner["outer"], 2);
  EXPECT_EQ(inner["top"], 1);
  EXPECT_EQ(inner["same"], 1);
}

TEST(References, ASectionMayItselfBeAReferenceAndAReferenceMayHaveOneInIt) {
  const auto tree = resolved(R"({"which": "b", "b": {"x": 5}, "section": "${${which}}",
                                 "value": "${section.x}", "inner": "${${which}.x}"})");
  ASSERT_TRUE(tree.ok()) << tree.status().to_string();
  EXPECT_EQ((*tree)["value"], 5);
  EXPECT_EQ((*tree)["inner"], 5);
}

TEST(References, AnEscapedOneIsText) {
  const auto tree = resolved(R"({"text": "\\${x} is ${x}", "x": 1})");
  ASSERT_TRUE(tree.ok()) << tree.status().to_string();
  EXPECT_EQ((*tree)["text"], "${x} is 1");
}

TEST(References, AResolverGivesItsDefaultWhereThereIsNoValue) {
  const support::ScopedVariable set("STARLING_TEST_SET", "7");
  const support::ScopedVariable unset("STARLING_TEST_UNSET", nullptr);
  const auto tree = resolved(R"({"none": null, "there": 1,
      "selected": "${oc.select:there,2}", "absent": "${oc.select:nothing,2}",
      "null": "${oc.select:none,[3]}", "bare": "${oc.select:nothing}",
      "env": "${oc.env:STARLING_TEST_SET}", "otherwise": "${oc.env:STARLING_TEST_UNSET,x}"})");
  ASSERT_TRUE(tree.ok()) << tree.status().to_string();
  EXPECT_EQ((*tree)["selected"], 1);
  EXPECT_EQ((*tree)["absent"], 2);
  EXPECT_EQ((*tree)["null"], ordered_json::array({3}));
  EXPECT_TRUE((*tree)["bare"].is_null());
  EXPECT_EQ((*tree)["env"], "7") << "a text, as the environment has it";
  EXPECT_EQ((*tree)["otherwise"], "x");
  expect_unresolved(R"({"a": "${oc.env:STARLING_TEST_UNSET}"})", {"STARLING_TEST_UNSET"});
}

TEST(References, FaultsNameTheKeyThatTheyStandAt) {
  expect_unresolved(R"({"a": {"b": "${c"}})", {"a.b", "'}'"});
  expect_unresolved(R"({"a": {"b": "${no.such}"}})", {"a.b", "${no.such}", "'no.such'"});
  expect_unresolved(R"({"a": "x${b}", "b": "y${a}"})", {"lead back"});
}

// Each level doubles the text of the one before.
TEST(References, WhatMultipliesIsCutOff) {
  ordered_json tree = {{"k0", std::string(1024, 'x')}};
  for (int level = 1; level <= 30; ++level) {
    const std::string before = "${k" + std::to_string(level - 1) + "}";
    tree["k" + std::to_string(level)] = before + before;
  }
  EXPECT_EQ(resolve_references(tree).status().code(), runtime::ErrorCode::kInvalidArgument);
}

TEST(ReferredKey, IsTheKeyOfOneReferenceAlone) {
  EXPECT_EQ(referred_key("${.x}", "a.y"), "a.x");
  EXPECT_EQ(referred_key("${oc.select:.x,1}", "a.y"), "a.x");
  EXPECT_EQ(referred_key("${b.c}", "a.y"), "b.c");
  for (const char* other : {"${b.c}s", "${b}${c}", "b.c", "${oc.env:HOME}", "${${b}}", "${}"})
    EXPECT_EQ(referred_key(other, "a.y"), std::nullopt) << other;
}

}  // namespace
}  // namespace rl
