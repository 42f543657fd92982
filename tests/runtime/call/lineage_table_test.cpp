#include "runtime/call/lineage_table.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace runtime {
namespace {

/// Says how it was forgotten.
struct Remembered final : Forgettable {
  void forget(std::string why) override {
    whys.push_back(std::move(why));
    if (when_forgotten) when_forgotten();
  }
  std::vector<std::string> whys;
  std::function<void()> when_forgotten;
};

class LineageTableTest : public ::testing::Test {
 protected:
  std::shared_ptr<Remembered> make() const { return std::make_shared<Remembered>(); }
  std::shared_ptr<LineageTable> table_ = std::make_shared<LineageTable>(100);
};

TEST_F(LineageTableTest, ForgetsTheOldestWhenThereIsTooMuch) {
  const auto first = make(), second = make(), third = make();
  const auto place1 = table_->add(first, 40), place2 = table_->add(second, 60);
  EXPECT_TRUE(first->whys.empty()) << "just as much as may be";
  EXPECT_EQ(table_->bytes(), 100u);
  const auto place3 = table_->add(third, 1);
  ASSERT_EQ(first->whys.size(), 1u);
  EXPECT_NE(first->whys[0].find("100 bytes"), std::string::npos) << first->whys[0];
  EXPECT_NE(first->whys[0].find("lineage_bytes_max"), std::string::npos) << first->whys[0];
  EXPECT_TRUE(second->whys.empty());
  EXPECT_EQ(table_->bytes(), 61u);
}

TEST_F(LineageTableTest, OneThatIsTooMuchByItselfIsForgottenAtOnce) {
  const auto large = make();
  const auto place = table_->add(large, 101);
  EXPECT_EQ(large->whys.size(), 1u);
  EXPECT_EQ(table_->bytes(), 0u);
}

TEST_F(LineageTableTest, APlaceThatGoesGivesItsBytesBackOnce) {
  const auto first = make(), second = make();
  {
    const auto place = table_->add(first, 70);
    EXPECT_EQ(table_->bytes(), 70u);
  }
  EXPECT_EQ(table_->bytes(), 0u);
  EXPECT_TRUE(first->whys.empty());
  {
    const auto forgotten = table_->add(first, 70);
    const auto place = table_->add(second, 70);
    EXPECT_EQ(first->whys.size(), 1u);
    EXPECT_EQ(table_->bytes(), 70u);
  }
  EXPECT_EQ(table_->bytes(), 0u) << "that of the forgotten one was given back before";
}

TEST_F(LineageTableTest, APlaceMoves) {
  const auto first = make(), second = make();
  auto place = table_->add(first, 10);
  {
    LineageTable::Place taken = std::move(place);
    place = table_->add(second, 20);
    EXPECT_EQ(table_->bytes(), 30u);
  }
  EXPECT_EQ(table_->bytes(), 20u);
  place = {};
  EXPECT_EQ(table_->bytes(), 0u);
}

TEST_F(LineageTableTest, ALineageThatIsGoneHearsNothing) {
  auto gone = make();
  const auto place = table_->add(gone, 60);
  gone.reset();
  const auto next = make();
  const auto second = table_->add(next, 60);
  EXPECT_EQ(table_->bytes(), 60u);
  EXPECT_TRUE(next->whys.empty());
}

TEST_F(LineageTableTest, WhatIsForgottenMayLeaveMeanwhile) {
  const auto first = make(), second = make();
  LineageTable::Place place = table_->add(first, 60);
  // What it drops may be the last of another lineage, which gives its place back.
  LineageTable::Place other = table_->add(second, 40);
  first->when_forgotten = [&] { other = {}; };
  const auto third = make();
  const auto last = table_->add(third, 30);
  EXPECT_EQ(table_->bytes(), 30u);
  EXPECT_TRUE(second->whys.empty());
}

TEST_F(LineageTableTest, APlaceMayOutliveItsOwner) {
  const auto first = make();
  LineageTable::Place place = table_->add(first, 10);
  table_.reset();
  place = {};
}

}  // namespace
}  // namespace runtime
