// Jobs in line before an actor.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "runtime/worker/actor_job.h"

namespace runtime {
namespace {

class JobLineTest : public ::testing::Test {
 protected:
  using Order = std::vector<std::uint64_t>;

  static std::unique_ptr<ActorJob> job(std::uint64_t sequence) {
    auto made = std::make_unique<ActorJob>();
    made->call.sequence = sequence;
    return made;
  }
  void push(std::initializer_list<std::uint64_t> sequences) {
    for (std::uint64_t sequence : sequences) line_.push(job(sequence));
  }
  /// Takes the first with that number out; 0: there is none.
  std::uint64_t take(std::uint64_t sequence) {
    const auto taken =
        line_.take_first([=](const ActorJob& each) { return each.call.sequence == sequence; });
    if (taken) {
      EXPECT_EQ(taken->next, nullptr) << "it took the others with it";
    }
    return taken ? taken->call.sequence : 0;
  }
  Order pop_all() {
    Order order;
    while (auto popped = line_.pop()) order.push_back(popped->call.sequence);
    return order;
  }

  JobLine line_;
};

TEST_F(JobLineTest, IsEmptyAtFirstAndAfterTheLast) {
  EXPECT_TRUE(line_.empty());
  EXPECT_EQ(line_.pop(), nullptr);
  push({1});
  EXPECT_FALSE(line_.empty());
  EXPECT_EQ(pop_all(), Order{1});
  EXPECT_TRUE(line_.empty());
  push({2, 3});
  EXPECT_EQ(line_.size(), 2u);
  EXPECT_EQ(pop_all(), (Order{2, 3})) << "and then as before";
}

TEST_F(JobLineTest, AJobThatIsPutBackIsTheFirst) {
  line_.push_front(job(2));
  line_.push_front(job(1));
  push({3});
  EXPECT_EQ(line_.size(), 3u);
  EXPECT_EQ(pop_all(), (Order{1, 2, 3}));
}

TEST_F(JobLineTest, OneIsTakenOutWhereverItStands) {
  push({1, 2, 3, 4});
  EXPECT_EQ(take(2), 2u);
  EXPECT_EQ(take(2), 0u);
  EXPECT_EQ(take(1), 1u);
  EXPECT_EQ(take(4), 4u);
  push({5});  // behind what is the last one now
  EXPECT_EQ(line_.size(), 2u);
  EXPECT_EQ(pop_all(), (Order{3, 5}));
}

TEST_F(JobLineTest, TheOnlyOneMayBeTakenOut) {
  push({1});
  EXPECT_EQ(take(1), 1u);
  EXPECT_TRUE(line_.empty());
  push({2});
  EXPECT_EQ(pop_all(), Order{2});
}

TEST_F(JobLineTest, OfSeveralThatMatchTheFirstIsTaken) {
  push({1, 2, 3});
  const auto is_odd = [](const ActorJob& each) { return each.call.sequence % 2 == 1; };
  EXPECT_EQ(line_.take_first(is_odd)->call.sequence, 1u);
  EXPECT_TRUE(line_.contains(is_odd));
  EXPECT_EQ(line_.take_first(is_odd)->call.sequence, 3u);
  EXPECT_FALSE(line_.contains(is_odd));
  EXPECT_EQ(line_.take_first(is_odd), nullptr);
}

TEST_F(JobLineTest, AVeryLongLineEndsWithoutRecursion) {
  for (std::uint64_t i = 0; i < 300'000; ++i) line_.push(job(i));
  EXPECT_EQ(line_.size(), 300'000u);
}

}  // namespace
}  // namespace runtime
