// Objects of a real cluster: a store that is smaller than what is put into it, and what a view
// promises.
#include <fstream>

#include "cluster_fixture.h"

namespace runtime::test {
namespace {

constexpr std::size_t kFloats = 1 << 20;  // 4 MiB

/// Its store holds 64 MiB.
class SmallStore : public ClusterTest {
 protected:
  void SetUp() override {
    start({"--object-store-memory", "67108864", "--spill-dir", (root_ / "spill").string(),
           "--spill-limit", "100000000"});
  }
  /// Bytes in the node's spill folder.
  std::uintmax_t spilled() const {
    std::uintmax_t bytes = 0;
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator at(root_ / "spill", error), end;
         !error && at != end; at.increment(error)) {
      std::error_code ignored;
      if (at->is_regular_file(ignored)) bytes += at->file_size(ignored);
    }
    return bytes;
  }
};

TEST_F(SmallStore, TakesMoreThanItHoldsAndGivesItBackToEveryone) {
  auto reader = broker("reader");
  std::vector<ObjectRef<std::vector<float>>> refs;
  for (int i = 0; i < 30; ++i) {  // 120 MiB: half of it the driver's, half the actor's
    if (i % 2 == 0) {
      auto ref = rt_->put(std::vector<float>(kFloats, static_cast<float>(i)));
      ASSERT_TRUE(ref.ok()) << ref.status().to_string();
      refs.push_back(*ref);
    } else {
      refs.push_back(reader.call(&Broker::make, std::uint64_t{kFloats}, static_cast<float>(i)));
    }
  }
  for (std::size_t i = 0; i < refs.size(); ++i) {
    auto view = rt_->objects().view(refs[i], 20s);
    ASSERT_TRUE(view.ok()) << view.status().to_string();
    EXPECT_EQ((*view)[0], static_cast<float>(i));
    EXPECT_EQ((*view)[kFloats - 1], static_cast<float>(i));
  }
  EXPECT_GT(spilled(), 0u);
  for (std::size_t i = 0; i < refs.size(); i += 7) {
    EXPECT_EQ(get(reader.call(&Broker::sum_ref, refs[i])), static_cast<double>(i) * kFloats);
  }
  refs.clear();
  EXPECT_TRUE(eventually([&] { return spilled() == 0; }));
}

TEST_F(SmallStore, SaysWhatIsFullAtThePutsDeadline) {
  std::vector<ObjectRef<std::vector<float>>> refs;
  Status status;
  while (status.ok() && refs.size() < 100) {
    auto ref = rt_->put(std::vector<float>(kFloats, 1), 300ms);
    status = ref.status();
    if (ref.ok()) refs.push_back(*ref);
  }
  expect_failure(status, ErrorCode::kResourceExhausted, {"is full", (root_ / "spill").string()});
  EXPECT_GE(refs.size(), 30u);
  refs.resize(5);
  EXPECT_TRUE(rt_->put(std::vector<float>(kFloats, 1), 10s).ok());
}

/// Nothing moves to disk, so that it stays full.
class FullStore : public ClusterTest {
 protected:
  void SetUp() override {
    start({"--object-store-memory", "67108864", "--spill-limit", "0"});
    for (;;) {
      auto ref = rt_->put(std::vector<float>(kFloats, 1), 200ms);
      if (!ref.ok()) break;
      held_.push_back(*ref);
    }
    EXPECT_GE(held_.size(), 10u);
  }
  /// Less than the half minute for which a put waits that does not look at the call's own time.
  template <class Work>
  static void expect_soon(Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    EXPECT_LT(std::chrono::steady_clock::now() - start, 25s);
  }

  /// Waits until a caller is in line for room.
  bool has_a_waiter() {
    return eventually([&] { return metric("starling_object_store_wanted_bytes") > 0; });
  }

  std::vector<ObjectRef<std::vector<float>>> held_;
};

TEST_F(FullStore, ArgumentsWaitForRoomAsLongAsTheirCallHas) {
  auto reader = broker("reader");
  const std::vector<float> large(kFloats, 2);
  expect_soon([&] {
    auto call = reader.call(CallOptions{.timeout = 500ms}, &Broker::sum, large);
    expect_failure(rt_->get(call, 20s).status(), ErrorCode::kResourceExhausted,
                   {"arguments of sum", "is full"});
  });
  expect_soon([&] {
    auto task = rt_->task(TaskOptions{.timeout = 500ms}, &sum_floats, large);
    expect_failure(rt_->get(task, 20s).status(), ErrorCode::kResourceExhausted,
                   {"arguments of task", "is full"});
  });
}

TEST_F(FullStore, AResultWaitsForRoomAsLongAsItsCallHasAndIsWanted) {
  auto maker = broker("maker");
  expect_soon([&] {
    auto call =
        maker.call(CallOptions{.timeout = 500ms}, &Broker::make, std::uint64_t{kFloats}, 3.0F);
    EXPECT_FALSE(rt_->get(call, 20s).ok());
    EXPECT_EQ(get(maker.call(&Broker::name)), "maker") << "the actor goes on";
  });
  expect_soon([&] {
    auto call =
        maker.call(CallOptions{.timeout = 10min}, &Broker::make, std::uint64_t{kFloats}, 3.0F);
    EXPECT_TRUE(has_a_waiter());
    EXPECT_TRUE(rt_->cancel(call).ok());
    EXPECT_EQ(rt_->get(call, 20s).status().code(), ErrorCode::kCancelled);
    EXPECT_EQ(get(maker.call(&Broker::name)), "maker");
  });
  auto call =
      maker.call(CallOptions{.timeout = 10min}, &Broker::make, std::uint64_t{kFloats}, 3.0F);
  EXPECT_TRUE(has_a_waiter());
  held_.resize(held_.size() / 2);
  EXPECT_EQ(get(call).size(), kFloats) << "and gets it";
}

TEST_F(ClusterTest, AResultThatComesTooLateIsLetGo) {
  auto maker = broker("maker");
  auto late = maker.call(CallOptions{.timeout = 100ms}, &Broker::make_slowly, 400,
                         std::uint64_t{kFloats}, 3.0F);
  EXPECT_EQ(rt_->get(late, 20s).status().code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(get(maker.call(&Broker::name)), "maker") << "behind it";
  EXPECT_TRUE(eventually([&] {
    auto list = rt_->objects().list();
    return list.ok() && list->objects.empty();
  }));
}

TEST_F(ClusterTest, AResultOfASharedActorThatHasEndedIsLetGo) {
  ActorOptions shared{.isolation = Isolation::kShared};
  auto maker = broker("maker", shared), other = broker("other", shared);
  ASSERT_EQ(maker.pid(), other.pid());
  auto numbers = maker.call(&Broker::make, std::uint64_t{kFloats}, 3.0F);
  ASSERT_TRUE(rt_->wait(std::vector{numbers}, 1, 20s).pending.empty());
  ASSERT_TRUE(rt_->kill(maker).ok());
  EXPECT_EQ(rt_->get(maker.call(&Broker::name), 20s).status().code(), ErrorCode::kActorDied);
  EXPECT_EQ(rt_->get(numbers, 20s).value_or({}).size(), kFloats) << "its process lives";
  numbers = {};
  EXPECT_TRUE(eventually([&] {
    auto list = rt_->objects().list();
    return list.ok() && list->objects.empty();
  }));
  EXPECT_EQ(get(other.call(&Broker::name)), "other");
}

TEST_F(ClusterTest, AViewIsAlignedReadOnlyAndOutlivesTheReference) {
  auto maker = broker("maker");
  auto ref = maker.call(&Broker::make, std::uint64_t{kFloats}, 3.0F);
  auto view = rt_->objects().view(ref, 20s);
  ASSERT_TRUE(view.ok()) << view.status().to_string();
  const auto at = reinterpret_cast<std::uintptr_t>(view->data());
  EXPECT_EQ(at % 64, 0u);
  std::string permissions;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char text[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, text) == 3 && begin <= at &&
        at < end)
      permissions = text;
  }
  EXPECT_EQ(permissions, "r--s");
  ref = {};
  ASSERT_TRUE(rt_->kill(maker).ok());
  EXPECT_EQ((*view)[kFloats - 1], 3.0F);
}

}  // namespace
}  // namespace runtime::test
