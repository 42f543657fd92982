// Objects of a node that leaves: their holders can read them afterwards.
#include "drain_fixture.h"

namespace runtime::test {
namespace {

TEST_F(DrainTest, ResultsOfActorsAndTasksStayReadable) {
  TestNode leaving = add_node();
  auto keeper = make<Keeper>(far(1));
  auto of_actor = keeper.call(&Keeper::make, kLarge, 1.5f);
  auto put_there = get(keeper.call(&Keeper::put, kLarge, 2.5f));
  const std::string runs = folder_.file("runs");
  TaskOptions options{.cpus = 0, .max_retries = 0};
  options.resources["far"] = 1;
  auto of_task = rt_->task(options, &note_and_fill, runs, kLarge, 3.5f);
  for (const auto& ref : {of_actor, of_task})
    ASSERT_EQ(rt_->wait(std::vector{ref}, 1, 20s).ready.size(), 1u);
  const TestNode other = add_node();
  ASSERT_EQ(drain(leaving).exit_code, 0);
  EXPECT_TRUE(has_left(leaving)) << leaving.process->output();
  leaving.process->wait();
  // The task may not run again, and results of actors never do: these are the objects themselves.
  EXPECT_EQ(get(of_actor), std::vector<float>(kLarge, 1.5f));
  EXPECT_EQ(get(put_there), std::vector<float>(kLarge, 2.5f));
  EXPECT_EQ(get(of_task), std::vector<float>(kLarge, 3.5f));
}

TEST_F(DrainTest, UnreadObjectsGoWithTheirReferences) {
  TestNode leaving = add_node(1);
  auto maker = make<Keeper>(far(1));
  auto numbers = get(maker.call(&Keeper::put, kLarge, 4.5f));
  ActorOptions near;
  near.node = rt_->cluster().node_id();
  auto reader = make<Keeper>(near);
  auto& held = numbers;
  ASSERT_TRUE(rt_->get(reader.call(&Keeper::hold, held), 20s).ok());
  numbers = {};  // only the other actor refers to it now
  TestNode other = add_node(1);
  ASSERT_EQ(drain(leaving).exit_code, 0);
  EXPECT_TRUE(has_left(leaving));
  auto first = rt_->get(reader.call(&Keeper::first_of_held), 30s);
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  EXPECT_EQ(*first, 4.5f);
}

TEST_F(DrainTest, ObjectsMoveASecondTimeWithTheNodeThatTookThem) {
  TestNode first = add_node(1);
  auto maker = make<Keeper>(far(1));
  auto numbers = get(maker.call(&Keeper::put, kLarge, 6.5f));
  // Its reader is on a node that leaves too, after a third process has got the reference from it.
  TestNode second = add_node(0);
  ActorOptions there;
  there.node = second.id;
  auto between = make<Keeper>(there);
  ASSERT_TRUE(rt_->get(between.call(&Keeper::hold, numbers), 20s).ok());
  TestNode third = add_node(1);
  ASSERT_EQ(drain(first).exit_code, 0);
  EXPECT_TRUE(has_left(first));
  ASSERT_EQ(drain(second, "2s").exit_code, 0);
  EXPECT_TRUE(has_left(second));
  EXPECT_EQ(get(numbers), std::vector<float>(kLarge, 6.5f));
}

TEST_F(DrainTest, PublishedObjectsHaveACopyElsewhereBeforeTheNodeLeaves) {
  TestNode leaving = add_node();
  auto maker = make<Keeper>(far(1));
  auto numbers = get(maker.call(&Keeper::put, 400'000, 7.5f));
  ASSERT_TRUE(rt_->published().publish("weights", 1, numbers).ok());
  numbers = {};
  const TestNode other = add_node();
  ASSERT_EQ(drain(leaving).exit_code, 0);
  EXPECT_TRUE(has_left(leaving));
  auto weights = rt_->published().latest<std::vector<float>>("weights");
  ASSERT_TRUE(weights.ok()) << weights.status().to_string();
  EXPECT_EQ(get(weights->ref), std::vector<float>(400'000, 7.5f));
}

TEST_F(DrainTest, AReferenceThatIsReadOnlyAfterTheNodeHasLeftFindsTheObject) {
  TestNode leaving = add_node(1);
  auto maker = make<Keeper>(far(1));
  auto numbers = get(maker.call(&Keeper::put, kLarge, 5.5f));
  // The constructor's arguments, as the head keeps them, name the place of today.
  const TestNode other = add_node(0);
  ActorOptions options;
  options.max_restarts = -1;
  options.node = other.id;
  auto reader = make<Reader>(options, numbers);
  const TestNode third = add_node(1);
  ASSERT_EQ(drain(leaving).exit_code, 0);
  EXPECT_TRUE(has_left(leaving));
  ASSERT_TRUE(rt_->kill(reader, Restarts::kAllowed).ok());
  auto first = rt_->get(reader.call(&Reader::first), 30s);
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  EXPECT_EQ(*first, 5.5f);
}

TEST_F(DrainTest, WhatIsTakenOverEndsWithItsLastReference) {
  TestNode leaving = add_node(1);
  auto maker = make<Keeper>(far(1));
  const auto kept = [&] {
    auto list = rt_->objects().list(10s);
    std::uint64_t bytes = 0;
    for (const StoreInfo& store : list.ok() ? list->stores : std::vector<StoreInfo>()) {
      if (store.node == rt_->cluster().node_id()) bytes = store.published_bytes;
    }
    return bytes;
  };
  {
    auto numbers = get(maker.call(&Keeper::put, kLarge, 8.5f));
    const TestNode other = add_node(1);
    ASSERT_EQ(drain(leaving).exit_code, 0);
    EXPECT_TRUE(has_left(leaving));
    EXPECT_GE(kept(), kLarge * sizeof(float));
    EXPECT_EQ(get(numbers).at(0), 8.5f);
  }
  EXPECT_TRUE(eventually([&] { return kept() == 0; })) << kept();
}

}  // namespace
}  // namespace runtime::test
