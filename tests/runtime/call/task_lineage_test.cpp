// The records for making results of tasks again, and their bounds.
#include "runtime/call/task_lineage.h"

#include <gtest/gtest.h>

#include "runtime/call/method.h"
#include "runtime/call/registry.h"

namespace runtime {
namespace {

class TaskLineageTest : public ::testing::Test {
 protected:
  TaskLineageTest() { function_.name = "resize"; }

  /// Of a task with this many bytes of arguments.
  std::shared_ptr<TaskLineage> lineage(std::size_t bytes, std::uint32_t runs = 3,
                                       std::vector<ObjectStatePtr> refs = {}) {
    TaskSource source{&function_, {}, runs};
    source.arguments.bytes = Buffer::copy_of(std::string(bytes, 'x'));
    source.arguments.refs = std::move(refs);
    return std::make_shared<TaskLineage>(
        source, "127.0.0.1:1",
        [this](ObjectValue arguments, std::shared_ptr<TaskLineage>) -> Result<ObjectStatePtr> {
          submitted_.push_back(std::move(arguments));
          return std::make_shared<ObjectState>(nullptr);
        });
  }

  MethodEntry function_;
  std::vector<ObjectValue> submitted_;
};

TEST_F(TaskLineageTest, RunsTheTaskAgainWithItsArgumentsSoOften) {
  ObjectValue small;
  small.bytes = Buffer::copy_of("seven");
  auto again = lineage(100, 2, {ObjectState::ready(nullptr, small)});
  EXPECT_EQ(again->maker(), "task resize");
  ASSERT_TRUE(again->run_again().ok());
  ASSERT_TRUE(again->run_again().ok());
  const Status refused = again->run_again().status();
  EXPECT_EQ(refused.code(), ErrorCode::kObjectLost);
  EXPECT_NE(refused.message().find("max_retries"), std::string::npos) << refused.message();
  ASSERT_EQ(submitted_.size(), 2u);
  EXPECT_EQ(submitted_[1].bytes.size(), 100u);
  ASSERT_EQ(submitted_[1].refs.size(), 1u);
  EXPECT_EQ(submitted_[1].refs[0]->value().bytes.text(), "seven");
}

TEST_F(TaskLineageTest, TheOldestIsForgottenWhenThereIsTooMuch) {
  auto table = std::make_shared<LineageTable>(100'000);
  auto oldest = lineage(40'000);
  auto second = lineage(40'000);
  oldest->keep_in(*table);
  second->keep_in(*table);
  EXPECT_EQ(table->bytes(), oldest->bytes() + second->bytes());
  auto third = lineage(40'000);
  third->keep_in(*table);
  EXPECT_EQ(table->bytes(), second->bytes() + third->bytes());
  const Status forgotten = oldest->run_again().status();
  EXPECT_EQ(forgotten.code(), ErrorCode::kObjectLost);
  EXPECT_NE(forgotten.message().find("lineage_bytes_max"), std::string::npos)
      << forgotten.message();
  EXPECT_TRUE(second->run_again().ok());
}

TEST_F(TaskLineageTest, OneThatIsTooMuchByItselfIsForgottenAtOnce) {
  auto table = std::make_shared<LineageTable>(1000);
  auto large = lineage(5000);
  large->keep_in(*table);
  EXPECT_EQ(table->bytes(), 0u);
  EXPECT_EQ(large->run_again().status().code(), ErrorCode::kObjectLost);
}

TEST_F(TaskLineageTest, WhatIsNotReferredToTakesNothing) {
  auto table = std::make_shared<LineageTable>(100'000);
  for (int i = 0; i < 1000; ++i) lineage(50'000)->keep_in(*table);
  EXPECT_EQ(table->bytes(), 0u);
  auto kept = lineage(50'000);
  kept->keep_in(*table);
  EXPECT_TRUE(kept->run_again().ok());
}

TEST_F(TaskLineageTest, AnArgumentOutlivesItsOtherReferences) {
  ObjectValue small;
  small.bytes = Buffer::copy_of("seven");
  auto argument = ObjectState::ready(nullptr, small);
  std::weak_ptr<ObjectState> watched = argument;
  auto again = lineage(10, 3, {argument});
  argument.reset();
  EXPECT_FALSE(watched.expired()) << "it cannot be made again itself";
  again.reset();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace runtime
