#include "runtime/store/object_store.h"

#include <atomic>
#include <fstream>

#include "fixture.h"
#include "tests/support/pauses.h"

namespace runtime {
namespace {

std::uintptr_t address(std::span<const std::byte> bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.data());
}

/// The "rw-p"-like permissions of the mapping that holds the address.
std::string permissions_of(std::uintptr_t at) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char permissions[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, permissions) == 3 && begin <= at &&
        at < end)
      return permissions;
  }
  return "";
}

TEST(ObjectStore, GivesTheCreatorItsObjectsBack) {
  StoreNode node;
  StoreUser process(node);
  for (std::size_t bytes : {0, 1, 63, 64, 1000, 200000, 300000, 5 << 20}) {
    auto data = pattern(bytes);
    auto location = process.objects->put(data);
    ASSERT_TRUE(location.ok()) << location.status().to_string();
    EXPECT_EQ(location->node, node.credentials.node);
    EXPECT_EQ(location->endpoint, node.tcp_listener->endpoint().to_string());
    auto view = process.objects->get(*location, soon());
    ASSERT_TRUE(view.ok()) << view.status().to_string();
    EXPECT_TRUE(equal(view->bytes(), data)) << bytes;
    EXPECT_EQ(address(view->bytes()) % 64, 0u);
    process.objects->free(*location);
  }
}

TEST(ObjectStore, LetsAnotherProcessReadWithoutACopy) {
  StoreNode node;
  StoreUser writer(node), reader(node);
  auto data = pattern(3 << 20);
  auto location = writer.objects->put(data);
  ASSERT_TRUE(location.ok());
  auto first = reader.objects->get(*location, soon());
  auto second = reader.objects->get(*location, soon());
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(equal(first->bytes(), data));
  EXPECT_EQ(address(first->bytes()), address(second->bytes()));
  EXPECT_EQ(permissions_of(address(first->bytes())), "r--s");
  EXPECT_EQ(node.stats().pins, 1u);
  first = BytesView();
  EXPECT_EQ(node.stats().pins, 1u);
  second = BytesView();
  EXPECT_TRUE(node.wait_for_stats([](const auto& stats) { return stats.pins == 0; }));
}

TEST(ObjectStore, PutsSmallObjectsWithoutTheNode) {
  StoreNode node;
  StoreUser process(node);
  auto first = process.objects->put(pattern(8));
  ASSERT_TRUE(first.ok());
  // The node answers nothing any more; what the leased slab holds still works.
  std::promise<void> stuck;
  auto release = stuck.get_future().share();
  node.loop.post([release] { release.wait(); });
  std::vector<ObjectLocation> locations;
  for (int i = 0; i < 3000; ++i) {
    auto location = process.objects->put(pattern(8, static_cast<unsigned>(i)));
    ASSERT_TRUE(location.ok());
    locations.push_back(*location);
  }
  for (int i = 0; i < 3000; i += 100) {
    auto view = process.objects->get(locations[static_cast<std::size_t>(i)], soon());
    ASSERT_TRUE(view.ok());
    EXPECT_TRUE(equal(view->bytes(), pattern(8, static_cast<unsigned>(i))));
  }
  stuck.set_value();
}

TEST(ObjectStore, ReadsAFreedObjectNoMore) {
  StoreNode node;
  StoreUser writer(node), reader(node);
  auto small = writer.objects->put(pattern(100));
  auto large = writer.objects->put(pattern(2 << 20));
  ASSERT_TRUE(small.ok() && large.ok());
  writer.objects->free(*small);
  writer.objects->free(*large);
  writer.objects->free(*large);  // twice is harmless
  EXPECT_EQ(writer.objects->get(*small, soon()).status().code(), ErrorCode::kObjectLost);
  EXPECT_EQ(reader.objects->get(*small, soon()).status().code(), ErrorCode::kObjectLost);
  EXPECT_TRUE(node.wait_for_stats([](const auto& stats) { return stats.leased_bytes <= 2 << 20; }));
  Status lost = reader.objects->get(*large, soon()).status();
  EXPECT_EQ(lost.code(), ErrorCode::kObjectLost);
  EXPECT_NE(lost.message().find(large->id.hex()), std::string::npos) << lost.message();
}

TEST(ObjectStore, NoticesThatMemoryWasReused) {
  StoreNode node;
  StoreUser writer(node), reader(node);
  auto old = writer.objects->put(pattern(2 << 20, 1));
  ASSERT_TRUE(old.ok());
  writer.objects->free(*old);
  ASSERT_TRUE(node.wait_for_stats([](const auto& stats) { return stats.leased_bytes == 0; }));
  auto fresh = writer.objects->put(pattern(2 << 20, 2));
  ASSERT_TRUE(fresh.ok());
  EXPECT_EQ(fresh->offset, old->offset);
  EXPECT_EQ(reader.objects->get(*old, soon()).status().code(), ErrorCode::kObjectLost);
  // Even if the extent's number were right.
  ObjectLocation forged = *old;
  forged.extent = fresh->extent;
  EXPECT_EQ(reader.objects->get(forged, soon()).status().code(), ErrorCode::kObjectLost);
}

TEST(ObjectStore, KeepsWhatIsBeingRead) {
  StoreNode node;
  StoreUser reader(node);
  auto data = pattern(2 << 20);
  BytesView view;
  {
    StoreUser writer(node);
    auto location = writer.objects->put(data);
    ASSERT_TRUE(location.ok());
    auto got = reader.objects->get(*location, soon());
    ASSERT_TRUE(got.ok());
    view = *got;
    writer.end();  // killed: leases go, the pin stays
    ASSERT_TRUE(node.wait_for_stats([](const auto& stats) { return stats.leased_bytes == 0; }));
  }
  EXPECT_GE(node.stats().orphaned_bytes, 2u << 20);
  StoreUser other(node);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(other.objects->put(pattern(2 << 20, 99)).ok());
  EXPECT_TRUE(equal(view.bytes(), data));
  view = BytesView();
  EXPECT_TRUE(node.wait_for_stats([](const auto& stats) { return stats.orphaned_bytes == 0; }));
}

TEST(ObjectStore, ReleasesThePinsOfADeadReader) {
  StoreNode node;
  StoreUser writer(node);
  auto location = writer.objects->put(pattern(2 << 20));
  ASSERT_TRUE(location.ok());
  {
    StoreUser reader(node);
    auto view = reader.objects->get(*location, soon());
    ASSERT_TRUE(view.ok());
    EXPECT_EQ(node.stats().pins, 1u);
    reader.end();
    EXPECT_TRUE(node.wait_for_stats([](const auto& stats) { return stats.pins == 0; }));
  }
}

TEST(ObjectStore, SaysThatItIsFullAndRecovers) {
  StoreNode node(16 << 20);
  StoreUser process(node, {.lease_timeout = milliseconds(100)});
  std::vector<ObjectLocation> held;
  Status status;
  while (status.ok() && held.size() < 100) {
    auto location = process.objects->put(pattern(2 << 20));
    status = location.status();
    if (location.ok()) held.push_back(*location);
  }
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(status.message().find("is full"), std::string::npos) << status.message();
  EXPECT_GE(held.size(), 6u);
  for (const auto& location : held) process.objects->free(location);
  // One large range again, although it was cut up before.
  auto large = process.objects->put(pattern(12 << 20));
  EXPECT_TRUE(large.ok()) << large.status().to_string();
  EXPECT_EQ(process.objects->put(pattern(17 << 20)).status().code(), ErrorCode::kResourceExhausted);
}

TEST(ObjectStore, GivesFreeMemoryBackToTheSystem) {
  StoreNode node(256 << 20, 1 << 20, 4 << 20);
  StoreUser process(node);
  auto location = process.objects->put(pattern(64 << 20));
  ASSERT_TRUE(location.ok());
  process.objects->free(*location);
  EXPECT_TRUE(node.wait_for_stats([](const auto& stats) {
    return stats.leased_bytes == 0 && stats.retained_bytes <= 4 << 20;
  }));
  auto again = process.objects->put(pattern(64 << 20));
  ASSERT_TRUE(again.ok());
  auto view = process.objects->get(*again, soon());
  ASSERT_TRUE(view.ok());
  EXPECT_TRUE(equal(view->bytes(), pattern(64 << 20)));
}

TEST(ObjectStore, KeepsFreeMemoryThatIsUsedAgainAndAgain) {
  StoreNode node(64 << 20, 1 << 20, 4 << 20, {}, milliseconds(300));
  StoreUser process(node);
  const auto bytes = pattern(16 << 20);
  const auto put_and_free = [&] {
    auto location = process.objects->put(bytes);
    ASSERT_TRUE(location.ok()) << location.status().to_string();
    process.objects->free(*location);
    ASSERT_TRUE(node.wait_for_stats([](const auto& stats) { return stats.leased_bytes == 0; }));
  };
  // Over several such times, and each time the pages are there at once.
  for (auto until = std::chrono::steady_clock::now() + milliseconds(800);
       std::chrono::steady_clock::now() < until;) {
    put_and_free();
    EXPECT_GE(node.stats().retained_bytes, 16u << 20);
  }
  EXPECT_TRUE(
      node.wait_for_stats([](const auto& stats) { return stats.retained_bytes <= 4 << 20; }));
}

TEST(ObjectStore, GivesAllFreeMemoryBackWhenAsked) {
  StoreNode node(256 << 20, 1 << 20, 256 << 20, {}, milliseconds(3'600'000));
  StoreUser process(node);
  auto location = process.objects->put(pattern(64 << 20));
  ASSERT_TRUE(location.ok());
  process.objects->free(*location);
  ASSERT_TRUE(node.wait_for_stats([](const auto& stats) {
    return stats.leased_bytes == 0 && stats.retained_bytes >= 64 << 20;
  }));
  std::uint64_t given = 0;
  node.on_loop([&] { given = node.store->give_back_free_memory(); });
  EXPECT_GE(given, 64u << 20);
  EXPECT_TRUE(node.wait_for_stats([](const auto& stats) { return stats.retained_bytes == 0; }));
  node.on_loop([&] { given = node.store->give_back_free_memory(); });
  EXPECT_EQ(given, 0u);
}

TEST(ObjectStore, DropsAnUnsealedObject) {
  StoreNode node;
  StoreUser process(node);
  {
    auto object = process.objects->create(2 << 20);
    ASSERT_TRUE(object.ok());
    EXPECT_EQ(object->data().size(), 2u << 20);
    EXPECT_GE(node.stats().leased_bytes, 2u << 20);
  }
  EXPECT_TRUE(node.wait_for_stats([](const auto& stats) { return stats.leased_bytes == 0; }));
}

TEST(ObjectStore, ViewsOutliveTheClient) {
  StoreNode node;
  StoreUser writer(node);
  auto data = pattern(1000);
  BytesView own, foreign;
  auto location = writer.objects->put(data);
  ASSERT_TRUE(location.ok());
  StoreUser reader(node);
  own = *writer.objects->get(*location, soon());
  foreign = *reader.objects->get(*location, soon());
  writer.objects.reset();
  reader.objects.reset();
  EXPECT_TRUE(equal(own.bytes(), data));
  EXPECT_TRUE(equal(foreign.bytes(), data));
}

TEST(ObjectStore, ReadsTypedViews) {
  StoreNode node;
  StoreUser process(node);
  std::vector<float> values{1, 2, 3};
  auto location = process.objects->put(std::as_bytes(std::span(values)));
  ASSERT_TRUE(location.ok());
  auto view = process.objects->get(*location, soon());
  ASSERT_TRUE(view.ok());
  auto floats = view->as<float>();
  ASSERT_TRUE(floats.ok());
  EXPECT_EQ(std::vector<float>(floats->begin(), floats->end()), values);
  EXPECT_EQ(view->as<double>().status().code(), ErrorCode::kInvalidArgument);
}

TEST(ObjectStore, FetchesFromAnotherNodeOnce) {
  StoreNode far, near;
  StoreUser writer(far), reader(near), second_reader(near);
  for (std::size_t bytes : {std::size_t{0}, std::size_t{100}, std::size_t{(5 << 20) + 17}}) {
    auto data = pattern(bytes, 3);
    auto location = writer.objects->put(data);
    ASSERT_TRUE(location.ok());
    auto view = reader.objects->get(*location, soon());
    ASSERT_TRUE(view.ok()) << view.status().to_string();
    EXPECT_TRUE(equal(view->bytes(), data));
    EXPECT_EQ(address(view->bytes()) % 64, 0u);
    std::uint64_t copies = near.stats().replica_bytes;
    EXPECT_GE(copies, bytes);
    auto again = second_reader.objects->get(*location, soon());
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(equal(again->bytes(), data));
    EXPECT_EQ(near.stats().replica_bytes, copies);
  }
  EXPECT_TRUE(far.wait_for_stats([](const auto& stats) { return stats.pins == 0; }));
}

TEST(ObjectStore, FetchesForManyAtOnce) {
  StoreNode far, near;
  StoreUser writer(far), reader(near);
  auto data = pattern(8 << 20);
  auto location = writer.objects->put(data);
  ASSERT_TRUE(location.ok());
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      auto view = reader.objects->get(*location, soon());
      if (view.ok() && equal(view->bytes(), data)) ++good;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good.load(), 6);
  EXPECT_LT(near.stats().replica_bytes, 9u << 20);
}

TEST(ObjectStore, ResumesAPullWhoseConnectionsBreak) {
  StoreNode near(256 << 20), far(256 << 20);
  StoreUser writer(near), reader(far);
  auto data = pattern(100 << 20);
  auto location = writer.objects->put(data);
  ASSERT_TRUE(location.ok()) << location.status().to_string();
  std::atomic<bool> done = false;
  std::atomic<int> cuts = 0;
  std::thread cutter([&] {
    for (; !done && cuts < 3; support::pace(milliseconds(3))) {
      near.on_loop([&] {
        for (auto& channel : near.channels) {
          if (channel->peer().role != Role::kNode || channel->closed()) continue;
          channel->close(unavailable("cut by the test"));
          ++cuts;
        }
      });
    }
  });
  auto view = reader.objects->get(*location, soon());
  done = true;
  cutter.join();
  ASSERT_TRUE(view.ok()) << view.status().to_string();
  EXPECT_TRUE(equal(view->bytes(), data));
  EXPECT_GE(cuts, 1);
}

TEST(ObjectStore, MakesRoomForNewCopies) {
  StoreNode far(64 << 20), near(8 << 20);
  StoreUser writer(far), reader(near);
  for (unsigned i = 0; i < 10; ++i) {
    auto location = writer.objects->put(pattern(3 << 20, i));
    ASSERT_TRUE(location.ok());
    auto view = reader.objects->get(*location, soon());
    ASSERT_TRUE(view.ok()) << i << ": " << view.status().to_string();
    EXPECT_TRUE(equal(view->bytes(), pattern(3 << 20, i)));
    view = BytesView();
    ASSERT_TRUE(near.wait_for_stats([](const auto& stats) { return stats.pins == 0; }));
    writer.objects->free(*location);
  }
  auto location = writer.objects->put(pattern(20 << 20));
  ASSERT_TRUE(location.ok());
  EXPECT_EQ(reader.objects->get(*location, soon()).status().code(), ErrorCode::kResourceExhausted);
}

TEST(ObjectStore, SaysWhyAFetchFailed) {
  StoreNode near;
  StoreUser reader(near);
  ObjectLocation gone;
  {
    StoreNode far;
    StoreUser writer(far);
    auto location = writer.objects->put(pattern(2 << 20));
    ASSERT_TRUE(location.ok());
    gone = *location;
    writer.objects->free(*location);
    ASSERT_TRUE(far.wait_for_stats([](const auto& stats) { return stats.leased_bytes == 0; }));
    EXPECT_EQ(reader.objects->get(gone, soon()).status().code(), ErrorCode::kObjectLost);
  }
  Status status = reader.objects->get(gone, soon()).status();
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_NE(status.message().find("cannot be reached"), std::string::npos) << status.message();
  EXPECT_EQ(near.stats().leased_bytes, 0u);
}

TEST(ObjectStore, EndsAGetAtItsDeadline) {
  StoreNode node;
  StoreUser writer(node), reader(node);
  auto location = writer.objects->put(pattern(1000));
  ASSERT_TRUE(location.ok());
  ASSERT_TRUE(reader.objects->put(pattern(8)).ok());
  std::promise<void> stuck;
  auto release = stuck.get_future().share();
  node.loop.post([release] { release.wait(); });
  EXPECT_EQ(reader.objects->get(*location, deadline_after(milliseconds(50))).status().code(),
            ErrorCode::kDeadlineExceeded);
  std::promise<Status> told;
  reader.objects->get(*location, deadline_after(milliseconds(50)),
                      [&](Result<BytesView> view) { told.set_value(view.status()); });
  EXPECT_EQ(told.get_future().get().code(), ErrorCode::kDeadlineExceeded);
  stuck.set_value();
  // The late pins are given back.
  EXPECT_TRUE(node.wait_for_stats([](const auto& stats) { return stats.pins == 0; }));
  EXPECT_TRUE(reader.objects->get(*location, soon()).ok());
}

TEST(ObjectStore, ServesManyThreads) {
  StoreNode node(256 << 20);
  StoreUser writer(node), reader(node);
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < 300; ++i) {
        auto data = pattern(i % 10 == 0 ? 400000 : 3000, t * 1000 + i);
        auto location = writer.objects->put(data);
        if (!location.ok()) continue;
        auto view = reader.objects->get(*location, soon());
        if (view.ok() && equal(view->bytes(), data)) ++good;
        writer.objects->free(*location);
        if (view.ok() && !equal(view->bytes(), data)) --good;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good.load(), 1200);
  EXPECT_TRUE(node.wait_for_stats(
      [](const auto& stats) { return stats.pins == 0 && stats.leased_bytes <= 2 << 20; }));
}

TEST(ObjectStore, RefusesMalformedRequests) {
  StoreNode node;
  StoreUser process(node);
  for (std::string bytes :
       {std::string(8, '\xff'), std::string(64, '\x01'), std::string(16, '\0')}) {
    Message message;
    message.kind = FrameKind::kObject;
    message.meta = Buffer::copy_of(bytes);
    auto reply = process.channel->request_blocking(std::move(message), soon());
    ASSERT_TRUE(reply.ok()) << reply.status().to_string();
  }
  EXPECT_TRUE(process.objects->put(pattern(10)).ok());
}

TEST(ObjectStore, FailsWhenItsNodeIsGone) {
  auto node = std::make_unique<StoreNode>();
  StoreUser process(*node);
  auto location = process.objects->put(pattern(100));
  ASSERT_TRUE(location.ok());
  node.reset();
  EXPECT_EQ(process.objects->put(pattern(1 << 20)).status().code(), ErrorCode::kUnavailable);
  auto view = process.objects->get(*location, soon());  // the memory is still mapped here
  EXPECT_TRUE(view.ok());
}

}  // namespace
}  // namespace runtime
