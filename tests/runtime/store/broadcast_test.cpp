// Many nodes that want one object copy it from each other; the store keeps objects in its own name;
// borrowers reach the owner.
#include <atomic>

#include "fixture.h"
#include "tests/support/eventually.h"

namespace runtime {
namespace {

constexpr std::size_t kBytes = 24 << 20;

TEST(Broadcast, TheSourceSendsFewCopiesHoweverManyNodesAsk) {
  constexpr std::size_t kNodes = 7;
  StoreNode source(128 << 20);
  StoreUser writer(source);
  std::vector<std::unique_ptr<StoreNode>> nodes;
  std::vector<std::unique_ptr<StoreUser>> users;
  for (std::size_t i = 0; i < kNodes; ++i) {
    nodes.push_back(std::make_unique<StoreNode>());
    users.push_back(std::make_unique<StoreUser>(*nodes.back()));
  }
  const auto data = pattern(kBytes);
  auto location = writer.objects->put(data);
  ASSERT_TRUE(location.ok());
  std::vector<std::thread> readers;
  std::atomic<std::size_t> good = 0;
  for (auto& user : users) {
    readers.emplace_back([&, raw = user.get()] {
      auto view = raw->objects->get(*location, soon());
      EXPECT_TRUE(view.ok()) << view.status().to_string();
      if (view.ok() && equal(view->bytes(), data)) ++good;
    });
  }
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(good, kNodes);
  EXPECT_EQ(source.stats().sent_bytes, 2 * kBytes);
  std::uint64_t sent = 0;
  for (auto& node : nodes) sent += node->stats().sent_bytes;
  EXPECT_EQ(sent, (kNodes - 2) * kBytes);
  writer.objects->free(*location);
  for (auto& node : nodes)
    EXPECT_TRUE(node->wait_for_stats([](const auto& stats) {
      return stats.replica_bytes == 0 && stats.pins == 0;
    })) << "copies go with the object";
  users.clear();
}

TEST(Broadcast, GoesOnWhenANodeInTheMiddleEnds) {
  StoreNode source(128 << 20);
  StoreUser writer(source);
  auto first = std::make_unique<StoreNode>(), second = std::make_unique<StoreNode>();
  StoreNode last;
  StoreUser last_user(last);
  const auto data = pattern(kBytes);
  auto location = writer.objects->put(data);
  ASSERT_TRUE(location.ok());
  {
    StoreUser first_user(*first), second_user(*second);
    ASSERT_TRUE(first_user.objects->get(*location, soon()).ok());
    ASSERT_TRUE(second_user.objects->get(*location, soon()).ok());
  }
  first.reset();  // where the third would be sent
  second.reset();
  auto view = last_user.objects->get(*location, soon());
  ASSERT_TRUE(view.ok()) << view.status().to_string();
  EXPECT_TRUE(equal(view->bytes(), data));
}

TEST(Broadcast, ANodeThatHasDroppedItsCopyIsPassedOver) {
  StoreNode source(128 << 20), first(32 << 20), second(32 << 20), last;
  StoreUser writer(source), first_user(first), second_user(second), last_user(last);
  const auto data = pattern(kBytes);
  auto location = writer.objects->put(data), other = writer.objects->put(data);
  ASSERT_TRUE(location.ok() && other.ok());
  for (StoreUser* user : {&first_user, &second_user})
    ASSERT_TRUE(user->objects->get(*location, soon()).ok());
  for (StoreNode* node : {&first, &second})
    EXPECT_TRUE(node->wait_for_stats([](const auto& stats) { return stats.pins == 0; }));
  for (StoreUser* user : {&first_user, &second_user})
    ASSERT_TRUE(user->objects->get(*other, soon()).ok());  // takes the place of the copy
  auto view = last_user.objects->get(*location, soon());
  ASSERT_TRUE(view.ok()) << view.status().to_string();
  EXPECT_TRUE(equal(view->bytes(), data));
  EXPECT_EQ(first.stats().sent_bytes + second.stats().sent_bytes, 0u);
}

/// Runs adopt() and waits.
Result<ObjectLocation> adopt(StoreNode& node, const ObjectLocation& location) {
  std::promise<Result<ObjectLocation>> adopted;
  node.on_loop([&] {
    node.store->adopt(location,
                      [&](Result<ObjectLocation> result) { adopted.set_value(std::move(result)); });
  });
  return adopted.get_future().get();
}

TEST(Adoption, AnObjectOutlivesItsOwnerInItsPlaceOrAsACopy) {
  for (std::size_t bytes : {std::size_t{3} << 20, std::size_t{70'000}}) {  // own range, slab
    StoreNode node, other;
    StoreUser reader(node);
    const auto data = pattern(bytes);
    ObjectLocation kept, copied;
    {
      StoreUser writer(node);
      auto location = writer.objects->put(data);
      ASSERT_TRUE(location.ok());
      auto adopted = adopt(node, *location), copy = adopt(other, *location);
      ASSERT_TRUE(adopted.ok()) << adopted.status().to_string();
      ASSERT_TRUE(copy.ok()) << copy.status().to_string();
      kept = *adopted;
      copied = *copy;
      EXPECT_EQ(kept.extent == location->extent, bytes > 1 << 20)
          << "copied only if it shares its range";
      writer.objects->free(*location);
      auto again = writer.objects->get(kept, soon());
      ASSERT_TRUE(again.ok()) << again.status().to_string();
      EXPECT_TRUE(equal(again->bytes(), data));
      if (bytes < 1 << 20) {
        EXPECT_EQ(writer.objects->get(*location, soon()).status().code(), ErrorCode::kObjectLost);
      }
      writer.end();
    }
    EXPECT_TRUE(node.wait_for_stats([](const auto& stats) { return stats.leased_bytes == 0; }));
    auto view = reader.objects->get(kept, soon());
    ASSERT_TRUE(view.ok()) << view.status().to_string();
    EXPECT_TRUE(equal(view->bytes(), data));
    StoreUser far(other);
    auto far_view = far.objects->get(copied, soon());
    ASSERT_TRUE(far_view.ok()) << far_view.status().to_string();
    EXPECT_TRUE(equal(far_view->bytes(), data));
    node.on_loop([&] { node.store->drop(kept); });
    EXPECT_TRUE(equal(view->bytes(), data)) << "a reader keeps it";
    view = BytesView();
    EXPECT_TRUE(node.wait_for_stats(
        [](const auto& stats) { return stats.adopted_bytes + stats.orphaned_bytes == 0; }));
    EXPECT_EQ(reader.objects->get(kept, soon()).status().code(), ErrorCode::kObjectLost);
  }
}

TEST(Borrowing, ReachesTheOwnerFromItsNodeAndFromOthersAndEndsWithTheBorrower) {
  StoreNode node, other;
  StoreUser owner(node), near(node);
  std::atomic<int> holds = 0, unholds = 0;
  owner.objects->set_owner_hooks(
      {[&](const ObjectLocation&) { ++holds; }, [&](const ObjectLocation&) { ++unholds; }, {}});
  auto location = owner.objects->put(pattern(100'000));
  auto another = owner.objects->put(pattern(100'000));
  ASSERT_TRUE(location.ok() && another.ok());
  const auto count = [](std::atomic<int>& value, int wanted) {
    (void)support::eventually([&] { return value == wanted; });
    return value.load();
  };
  near.objects->borrow(*location);
  EXPECT_EQ(count(holds, 1), 1);
  {
    StoreUser far(other);
    std::promise<Status> told;  // the owner's node knows of it
    far.objects->borrow_and_confirm(*location, soon(),
                                    [&](Status status) { told.set_value(std::move(status)); });
    EXPECT_TRUE(told.get_future().get().ok());
    far.objects->borrow(*location);
    near.objects->unborrow(*location);
    EXPECT_TRUE(other.wait_for_stats([](const auto& stats) { return stats.borrows == 1; }));
    const int before = holds;
    near.objects->borrow(*another);
    EXPECT_EQ(count(holds, before + 1), before + 1) << "the owner hears of it after the end above";
    EXPECT_EQ(unholds, 0) << "the other node borrows it";
    node.on_loop([&] {
      for (auto& channel : node.channels) {
        if (channel->peer().role == Role::kNode) channel->close(unavailable("cut by the test"));
      }
    });
    EXPECT_TRUE(node.wait_for_stats([&](const auto& stats) {
      return stats.borrows == 2 && holds >= 1;
    })) << "said again over a new connection";
    near.objects->unborrow(*another);
    far.end();
  }
  EXPECT_TRUE(node.wait_for_stats([](const auto& stats) { return stats.borrows == 0; }));
  EXPECT_TRUE(other.wait_for_stats([](const auto& stats) { return stats.borrows == 0; }));
  EXPECT_GE(count(unholds, holds), 1);
  std::promise<Status> confirmed;
  owner.objects->free(*location);
  ObjectLocation gone = *location;
  gone.extent = 999;
  near.objects->borrow_and_confirm(gone, soon(),
                                   [&](Status status) { confirmed.set_value(std::move(status)); });
  EXPECT_EQ(confirmed.get_future().get().code(), ErrorCode::kObjectLost);
}

}  // namespace
}  // namespace runtime
