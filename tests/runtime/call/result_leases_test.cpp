#include "runtime/call/result_leases.h"

#include <gtest/gtest.h>

#include "runtime/call/call_numbers.h"

namespace runtime {
namespace {

ObjectValue lent(std::shared_ptr<const void> loan) {
  ObjectValue value;
  value.loan = std::move(loan);
  return value;
}

TEST(CallNumbers, EndsInAnyOrder) {
  CallNumbers numbers;
  EXPECT_TRUE(numbers.all_ended());
  for (std::uint64_t number = 1; number <= 4; ++number) EXPECT_EQ(numbers.take(), number);
  numbers.end(2);
  numbers.end(3);
  EXPECT_EQ(numbers.ended_up_to(), 0u);
  EXPECT_TRUE(numbers.has_ended(3));
  EXPECT_FALSE(numbers.has_ended(1));
  numbers.end(1);
  numbers.end(1);
  EXPECT_EQ(numbers.ended_up_to(), 3u);
  EXPECT_FALSE(numbers.all_ended());
  numbers.end(4);
  EXPECT_TRUE(numbers.all_ended());
}

TEST(ResultLeases, ArgumentsAreKeptUntilTakenBack) {
  ResultLeases leases;
  auto kept = std::make_shared<int>(1);
  leases.lend(1, lent(kept));
  leases.lend(2, lent(kept));
  EXPECT_TRUE(leases.lends_arguments());
  EXPECT_EQ(leases.take_back(3).loan, nullptr);
  EXPECT_EQ(leases.take_back(1).loan, kept);
  EXPECT_EQ(leases.take_back(1).loan, nullptr);
  EXPECT_EQ(leases.take_all_back().size(), 1u);
  EXPECT_FALSE(leases.lends_arguments());
  EXPECT_EQ(kept.use_count(), 1);
}

TEST(ResultLeases, ResultsKeepTheirOwnerUntilTheyAreGone) {
  auto leases = std::make_shared<ResultLeases>();
  std::weak_ptr<ResultLeases> owner = leases;
  std::shared_ptr<const void> first = ResultLeases::hold(leases, {}, {}, 1);
  std::shared_ptr<const void> second = ResultLeases::hold(leases, {}, {}, 2);
  first.reset();
  EXPECT_TRUE(leases->holds_results());
  leases.reset();
  EXPECT_FALSE(owner.expired());
  second.reset();
  EXPECT_TRUE(owner.expired());
}

}  // namespace
}  // namespace runtime
