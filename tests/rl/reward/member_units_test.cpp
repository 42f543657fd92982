#include "rl/reward/member_units.h"

#include <gtest/gtest.h>

#include <string>

namespace rl {
namespace {

class MemberUnits : public ::testing::Test {
 protected:
  // Members are single digits here.
  bool differ(const std::string& a, const std::string& b) {
    return have_members_of_different_units(a, b, [this](const auto& x, const auto& y) {
      ++compared_;
      return x.front() == y.front();
    });
  }

  int compared_ = 0;
};

TEST_F(MemberUnits, OfTuplesAndIntervalsGoByPlace) {
  EXPECT_TRUE(differ("(3 cm, 4 km)", "(3 km, 4 cm)"));
  EXPECT_TRUE(differ("$\\left[3\\text{ cm}, 4\\text{ km}\\right)$", "[3 km, 4 km)"));
  EXPECT_FALSE(differ("(3 cm, 4 km)", "(3\\text{ centimeters}, 4\\text{ km})"));
  EXPECT_EQ(compared_, 0);
}

TEST_F(MemberUnits, OfSetsAndListsGoByValue) {
  EXPECT_TRUE(differ("3 cm, 4 km", "4 cm, 3 km"));
  EXPECT_TRUE(differ("\\{3 cm, 4 km\\}", "3 km; 4 cm"));
  EXPECT_TRUE(differ("3 cm and 4 km", "3 km\\text{ and }4 cm"));
  EXPECT_FALSE(differ("3 cm, 4 km", "4 km, 3 cm"));
  EXPECT_FALSE(differ("3 cm, 3 km", "3 km, 3 cm")) << "one of equal value has its unit";
  EXPECT_FALSE(differ("1 cm, 2 km", "3 cm, 4 cm")) << "other values are for others to tell";
  EXPECT_GT(compared_, 0);
}

TEST_F(MemberUnits, WhatOneAnswerLeavesOutIsNoDifference) {
  EXPECT_FALSE(differ("(3 cm, 4 km)", "(3, 4)"));
  EXPECT_FALSE(differ("(3, 4 km)", "(3 cm, 4 km)"));
  EXPECT_FALSE(differ("5 cm", "5 km")) << "there are no members";
  EXPECT_FALSE(differ("(3 cm, 4 km)", "(3 km, 4 cm, 5 cm)")) << "nor as many";
}

}  // namespace
}  // namespace rl
