// A store that is full: what moves to disk, what waits, and what is said when nothing helps.
#include <sys/mount.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>

#include "fixture.h"

namespace runtime {
namespace {

constexpr std::uint64_t kCapacity = 16 << 20;
constexpr std::size_t kLarge = 2 << 20;

/// A folder for one store, gone with the test.
class SpillFolderPath {
 public:
  std::string path() const { return root_.file("objects"); }
  std::size_t files() const {
    std::error_code error;
    std::filesystem::directory_iterator entries(path(), error);
    return error ? 0 : static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }

 private:
  support::TemporaryFolder root_;
};

SpillOptions into(const std::string& folder, std::uint64_t limit = 1 << 30) {
  return {.folder = folder, .limit_bytes = limit};
}

struct Held {
  ObjectLocation location;
  std::vector<std::byte> data;
};

/// Puts `count` objects of `bytes` each; fewer, with the failure, when one fails.
std::vector<Held> put_many(StoreUser& process, std::size_t count, std::size_t bytes,
                           Status* failure = nullptr) {
  std::vector<Held> held;
  for (unsigned i = 0; i < count; ++i) {
    auto data = pattern(bytes, i);
    auto location = process.objects->put(data);
    if (!location.ok()) {
      if (failure)
        *failure = location.status();
      else
        ADD_FAILURE() << location.status().to_string();
      break;
    }
    held.push_back({*location, std::move(data)});
  }
  return held;
}

void expect_readable(StoreUser& process, const std::vector<Held>& held) {
  for (const Held& object : held) {
    auto view = process.objects->get(object.location, soon());
    ASSERT_TRUE(view.ok()) << view.status().to_string();
    ASSERT_TRUE(equal(view->bytes(), object.data));
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(view->bytes().data()) % 64, 0u);
  }
}

TEST(Spill, TakesMoreThanFitsAndGivesItAllBack) {
  SpillFolderPath folder;
  StoreNode node(kCapacity, 1 << 20, 256 << 20, into(folder.path()));
  StoreUser writer(node), reader(node);
  auto held = put_many(writer, 24, kLarge);
  ASSERT_EQ(held.size(), 24u);
  auto stats = node.stats();
  EXPECT_GT(stats.spills, 0u);
  EXPECT_GE(stats.spilled_bytes, 24 * kLarge - kCapacity);
  expect_readable(writer, held);
  expect_readable(reader, held);
  EXPECT_GT(node.stats().restores, 0u);
  for (const Held& object : held) writer.objects->free(object.location);
  EXPECT_TRUE(node.wait_for_stats(
      [](const auto& now) { return now.spilled_bytes == 0 && now.leased_bytes == 0; }));
  EXPECT_EQ(folder.files(), 0u);
}

TEST(Spill, TakesSmallObjectsBySlabs) {
  SpillFolderPath folder;
  StoreNode node(kCapacity, 1 << 20, 256 << 20, into(folder.path()));
  StoreUser writer(node), reader(node);
  auto held = put_many(writer, 4000, 10'000);
  ASSERT_EQ(held.size(), 4000u);
  EXPECT_GT(node.stats().spills, 0u);
  expect_readable(reader, held);
  expect_readable(writer, held);
  // Freed one by one, on disk or not.
  for (const Held& object : held) writer.objects->free(object.location);
  EXPECT_TRUE(node.wait_for_stats(
      [](const auto& stats) { return stats.spilled_bytes == 0 && stats.leased_bytes <= 2 << 20; }));
}

TEST(Spill, WorksInTheBackgroundBeforeAnyoneWaits) {
  SpillFolderPath folder;
  StoreNode node(kCapacity, 1 << 20, 256 << 20, into(folder.path()));
  StoreUser writer(node);
  auto held = put_many(writer, 7, kLarge);  // 88 % with the headers' pages
  ASSERT_EQ(held.size(), 7u);
  EXPECT_TRUE(node.wait_for_stats(
      [](const auto& stats) { return stats.leased_bytes <= kCapacity * 7 / 10; }));
  expect_readable(writer, held);
}

TEST(Spill, LeavesAloneWhatIsBeingReadOrWritten) {
  SpillFolderPath folder;
  StoreNode node(kCapacity, 1 << 20, 256 << 20, into(folder.path()));
  StoreUser writer(node, {.lease_timeout = milliseconds(200)}), reader(node);
  std::vector<BytesView> views;
  auto held = put_many(writer, 3, kLarge);
  for (const Held& object : held) views.push_back(*reader.objects->get(object.location, soon()));
  auto own = put_many(writer, 3, kLarge);
  for (const Held& object : own) views.push_back(*writer.objects->get(object.location, soon()));
  auto unsealed = writer.objects->create(kLarge);
  ASSERT_TRUE(unsealed.ok());
  std::vector<const std::byte*> places;
  for (const BytesView& view : views) places.push_back(view.bytes().data());
  EXPECT_EQ(writer.objects->put(pattern(kLarge * 2)).status().code(),
            ErrorCode::kResourceExhausted);
  EXPECT_EQ(node.stats().spills, 0u);
  for (std::size_t i = 0; i < views.size(); ++i) {
    EXPECT_EQ(views[i].bytes().data(), places[i]);
    EXPECT_TRUE(equal(views[i].bytes(), (i < 3 ? held[i] : own[i - 3]).data));
  }
  views.clear();
  EXPECT_TRUE(reader.objects->put(pattern(kLarge * 2)).ok()) << "which has the usual patience";
}

TEST(Spill, PuttersWaitInLineForRoom) {
  StoreNode node(kCapacity);
  StoreUser writer(node), waiting(node);
  auto held = put_many(writer, 7, kLarge);
  std::atomic<bool> done = false;
  std::optional<Result<ObjectLocation>> late;
  std::thread putter([&] {
    late.emplace(waiting.objects->put(pattern(6 << 20)));
    done = true;
  });
  ASSERT_TRUE(node.wait_for_stats([](const auto& stats) { return stats.wanted_bytes > 0; }));
  EXPECT_FALSE(done);
  for (const Held& object : held) writer.objects->free(object.location);
  putter.join();
  EXPECT_TRUE(late->ok()) << late->status().to_string();
}

TEST(Spill, AWaitEndsWithItsDeadlineAndTheFigures) {
  SpillFolderPath folder;
  StoreNode node(kCapacity, 1 << 20, 256 << 20, into(folder.path(), 3 * kLarge));
  StoreUser writer(node, {.lease_timeout = milliseconds(300)});
  Status status;
  auto begin = std::chrono::steady_clock::now();
  auto held = put_many(writer, 100, kLarge, &status);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(250));
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(status.message().find(folder.path()), std::string::npos) << status.message();
  EXPECT_GE(held.size(), 7u);
  EXPECT_LT(held.size(), 12u);
  expect_readable(writer, held);
  // What can never fit is refused at once.
  const auto too_large = pattern(17 << 20);
  begin = std::chrono::steady_clock::now();
  EXPECT_EQ(StoreUser(node, {.lease_timeout = std::chrono::minutes(10)})
                .objects->put(too_large)
                .status()
                .code(),
            ErrorCode::kResourceExhausted);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(1));
  for (const Held& object : held) writer.objects->free(object.location);
  EXPECT_TRUE(writer.objects->put(pattern(12 << 20)).ok());
}

TEST(Spill, ADeadWaitersPlaceInLineIsFree) {
  StoreNode node(kCapacity);
  StoreUser writer(node), other(node);
  auto held = put_many(writer, 7, kLarge);
  {
    StoreUser dying(node);
    std::thread putter([&] {
      EXPECT_EQ(dying.objects->put(pattern(12 << 20)).status().code(), ErrorCode::kUnavailable);
    });
    EXPECT_TRUE(node.wait_for_stats([](const auto& stats) { return stats.wanted_bytes > 0; }));
    dying.end();
    putter.join();
  }
  writer.objects->free(held[0].location);
  EXPECT_TRUE(other.objects->put(pattern(kLarge)).ok());
}

TEST(Spill, AFullDiskIsSaidAndLosesNothing) {
  char root[] = "/tmp/starling-disk-XXXXXX";
  ASSERT_NE(::mkdtemp(root), nullptr);
  if (::mount("none", root, "tmpfs", 0, "size=5m") != 0) {
    ::rmdir(root);
    GTEST_SKIP() << "needs the right to mount a tmpfs";
  }
  {
    StoreNode node(kCapacity, 1 << 20, 256 << 20, into(std::string(root) + "/objects"));
    StoreUser writer(node, {.lease_timeout = milliseconds(500)}), reader(node);
    Status status;
    auto held = put_many(writer, 100, kLarge, &status);
    EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
    EXPECT_NE(status.message().find(std::string(root) + "/objects"), std::string::npos)
        << status.message();
    EXPECT_NE(status.message().find("No space left"), std::string::npos) << status.message();
    EXPECT_GE(held.size(), 7u);
    for (const Held& object : held) {
      auto view = reader.objects->get(object.location, soon());
      ASSERT_TRUE(view.ok()) << view.status().to_string();
      ASSERT_TRUE(equal(view->bytes(), object.data));
      view = BytesView();
      writer.objects->free(object.location);  // makes room for the next one on disk
    }
    EXPECT_TRUE(writer.objects->put(pattern(kLarge)).ok());
  }
  ::umount(root);
  ::rmdir(root);
}

TEST(Spill, OtherNodesReadWhatIsOnDisk) {
  SpillFolderPath folder;
  StoreNode near(kCapacity, 1 << 20, 256 << 20, into(folder.path())), far(64 << 20);
  StoreUser writer(near), reader(far);
  auto held = put_many(writer, 16, kLarge);
  EXPECT_GT(near.stats().spills, 0u);
  expect_readable(reader, held);
}

TEST(Spill, FilesOfADeadProcessGo) {
  SpillFolderPath folder;
  StoreNode node(kCapacity, 1 << 20, 256 << 20, into(folder.path()));
  {
    StoreUser writer(node);
    put_many(writer, 24, kLarge);
    EXPECT_GT(node.stats().spilled_bytes, 0u);
  }
  EXPECT_TRUE(node.wait_for_stats(
      [](const auto& stats) { return stats.spilled_bytes == 0 && stats.leased_bytes == 0; }));
  EXPECT_TRUE(node.wait_for_stats([&](const auto&) { return folder.files() == 0; }));
}

/// Those that cannot be read, of which there are some, are lost, and the message has `part` in it.
void expect_some_lost(StoreUser& reader, const std::vector<Held>& held, const std::string& part) {
  std::size_t lost = 0;
  for (const Held& object : held) {
    auto view = reader.objects->get(object.location, soon());
    if (view.ok()) continue;
    ++lost;
    EXPECT_EQ(view.status().code(), ErrorCode::kObjectLost);
    EXPECT_NE(view.status().message().find(part), std::string::npos) << view.status().message();
  }
  EXPECT_GT(lost, 0u);
}

TEST(Spill, AVanishedFileIsALostObject) {
  SpillFolderPath folder;
  StoreNode node(kCapacity, 1 << 20, 256 << 20, into(folder.path()));
  StoreUser writer(node);
  auto held = put_many(writer, 24, kLarge);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    std::filesystem::resize_file(entry.path(), 100);
  expect_some_lost(writer, held, folder.path());
}

TEST(Spill, ADamagedFileIsALostObjectNotAWrongOne) {
  SpillFolderPath folder;
  StoreNode node(kCapacity, 1 << 20, 256 << 20, into(folder.path()));
  StoreUser writer(node);
  auto held = put_many(writer, 24, kLarge);
  std::size_t damaged = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(1000 + 4097 * damaged++));
    file.put('!').put('?');
  }
  ASSERT_GT(damaged, 0u);
  expect_some_lost(writer, held, "are damaged");
}

TEST(Spill, ManyProcessesAtOnce) {
  SpillFolderPath folder;
  StoreNode node(kCapacity, 1 << 20, 256 << 20, into(folder.path()));
  constexpr int kProcesses = 4;
  std::vector<std::unique_ptr<StoreUser>> processes;
  for (int i = 0; i < kProcesses; ++i) processes.push_back(std::make_unique<StoreUser>(node));
  std::vector<std::thread> threads;
  for (int i = 0; i < kProcesses; ++i) {
    threads.emplace_back([&, i] {
      StoreUser& self = *processes[static_cast<std::size_t>(i)];
      for (int round = 0; round < 3; ++round) {
        auto held = put_many(self, 6, 1 << 20);
        expect_readable(self, held);
        for (const Held& object : held) self.objects->free(object.location);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  processes.clear();
  EXPECT_TRUE(node.wait_for_stats([](const auto& stats) {
    return stats.spilled_bytes == 0 && stats.leased_bytes == 0 && stats.pins == 0;
  }));
}

}  // namespace
}  // namespace runtime
