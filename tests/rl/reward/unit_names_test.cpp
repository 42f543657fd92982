#include "rl/reward/unit_names.h"

#include <gtest/gtest.h>

#include <string>

namespace rl {
namespace {

TEST(UnitNames, NamesAndSignsOfAUnitAreOne) {
  for (const char* name : {"cm", "centimeter", "centimetre"}) EXPECT_EQ(unit_sign(name), "cm");
  EXPECT_EQ(unit_sign("feet"), unit_sign("ft"));
  EXPECT_EQ(unit_sign("mi"), "mile");
  EXPECT_EQ(unit_sign("mph"), "mile h");
  EXPECT_EQ(unit_sign("day"), "day");
}

TEST(UnitNames, WhatMayBeAnyUnitHasNoSign) {
  for (const char* word : {"", " ", "unit", "pound", "way", "met", "metre centimetre", "cny rmb"})
    EXPECT_EQ(unit_sign(word), "") << word;
}

}  // namespace
}  // namespace rl
