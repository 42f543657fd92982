// One key by itself. What whole configurations are told is in check_test.cpp.
#include "rl/config/judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace rl {
namespace {

using nlohmann::ordered_json;
using Verdict = Judgement::Verdict;

KeyInfo row_of(KeyKind kind, KeySupport support = KeySupport::kSupported,
               std::string_view allowed = "", std::string_view note = "") {
  return {.key = "a.b",
          .default_text = "-",
          .kind = kind,
          .support = support,
          .allowed = allowed,
          .note = note};
}

Judgement judged(const KeyInfo& row, const ordered_json& value,
                 const ordered_json& otherwise = nullptr) {
  return judge_key(row, "a.b", value, otherwise);
}

TEST(Judge, NumbersAreWhatTheyAreWorth) {
  EXPECT_TRUE(matches_kind(3.0, KeyKind::kInt));
  EXPECT_TRUE(matches_kind(3, KeyKind::kFloat));
  EXPECT_FALSE(matches_kind(3.5, KeyKind::kInt));
  EXPECT_FALSE(matches_kind(1e300, KeyKind::kInt)) << "it has no exact integer";
  EXPECT_FALSE(matches_kind(true, KeyKind::kInt));
  EXPECT_FALSE(matches_kind("3", KeyKind::kInt));
  EXPECT_TRUE(matches_kind(false, KeyKind::kIntOrFalse));
  EXPECT_FALSE(matches_kind(true, KeyKind::kIntOrFalse));
  EXPECT_TRUE(matches_kind("one", KeyKind::kStrings));
  EXPECT_FALSE(matches_kind(ordered_json::array({"one", 2}), KeyKind::kStrings));
}

TEST(Judge, WhatIsNoNumberIsInvalidWhereverItIs) {
  const double infinite = std::numeric_limits<double>::infinity();
  for (const ordered_json& value :
       {ordered_json(infinite), ordered_json(std::nan("")), ordered_json::array({1.0, infinite}),
        ordered_json({{"weight", ordered_json::array({infinite})}})}) {
    const Judgement judgement = judged(row_of(KeyKind::kAny), value);
    EXPECT_EQ(judgement.verdict, Verdict::kInvalid) << judgement.message;
    EXPECT_NE(judgement.message.find("a.b: expected a finite number"), std::string::npos)
        << judgement.message;
  }
}

// Without a note there is no such choice anywhere; with one it is verl's, and is not built here.
TEST(Judge, AnUnknownChoiceIsInvalidAndAnothersIsRefusedWithItsReason) {
  const KeyInfo plain = row_of(KeyKind::kString, KeySupport::kSupported, "mean|sum|max");
  EXPECT_EQ(judged(plain, "sum").verdict, Verdict::kUsed);
  const Judgement invalid = judged(plain, "median");
  EXPECT_EQ(invalid.verdict, Verdict::kInvalid);
  EXPECT_EQ(invalid.message, "a.b: expected mean, sum or max, got the string 'median'");
  const Judgement refused = judged(
      row_of(KeyKind::kString, KeySupport::kSupported, "mean", "there is no other engine"), "x");
  EXPECT_EQ(refused.verdict, Verdict::kRefused);
  EXPECT_NE(refused.message.find("there is no other engine"), std::string::npos);
}

TEST(Judge, EachItemOfAListIsAChoice) {
  const KeyInfo row = row_of(KeyKind::kStrings, KeySupport::kSupported, "console|file");
  EXPECT_EQ(judged(row, ordered_json::array({"file", "console"})).verdict, Verdict::kUsed);
  const Judgement judgement = judged(row, ordered_json::array({"file", "paper"}));
  EXPECT_EQ(judgement.verdict, Verdict::kInvalid);
  EXPECT_NE(judgement.message.find("'paper'"), std::string::npos) << judgement.message;
}

TEST(Judge, AKeyThatIsNotBuiltTakesItsDefaultAndWhatMeansNothing) {
  const KeyInfo row = row_of(KeyKind::kAny, KeySupport::kRefused, "8", "not built");
  EXPECT_EQ(judged(row, 4, 4.0).verdict, Verdict::kUsed);
  EXPECT_EQ(judged(row, 8, 4).verdict, Verdict::kUsed);
  EXPECT_EQ(judged(row, nullptr, 4).verdict, Verdict::kUsed);
  EXPECT_EQ(judged(row, ordered_json::array(), 4).verdict, Verdict::kUsed);
  EXPECT_EQ(judged(row, 5, 4).verdict, Verdict::kRefused);
}

// The entries of a user's dictionary have the types that the user gives them.
TEST(Judge, WhatIsInsideOfADictionaryHasAnyType) {
  const KeyInfo row = row_of(KeyKind::kMap);
  EXPECT_EQ(judged(row, 5).verdict, Verdict::kInvalid);
  EXPECT_EQ(judge_key(row, "a.b.c", 5, nullptr).verdict, Verdict::kUsed);
}

}  // namespace
}  // namespace rl
