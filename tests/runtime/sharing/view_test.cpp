// Values read in place: spans, structs of spans, and what a view promises about the memory.
#include <sys/wait.h>

#include <csignal>
#include <fstream>

#include "runtime/coroutine.h"
#include "tests/runtime/sharing/sharing_fixture.h"
#include "tests/support/pauses.h"

namespace runtime::test {
namespace {

static_assert(view_detail::kBorrows<std::span<const float>>);
static_assert(view_detail::kBorrows<Batch>);
static_assert(view_detail::kBorrows<std::vector<std::optional<Batch>>>);
static_assert(!view_detail::kBorrows<Known>);
static_assert(!view_detail::kBorrows<std::vector<ObjectRef<Batch>>>);
static_assert(!view_detail::kBorrows<std::string>);

class ViewTest : public SharingTest {
 protected:
  static bool is_aligned(const void* at) { return reinterpret_cast<std::uintptr_t>(at) % 64 == 0; }
  /// Of the mapping that this address lies in.
  static std::string permissions(const void* address) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      std::uintptr_t begin = 0, end = 0;
      char text[5] = {};
      if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, text) == 3 && begin <= at &&
          at < end)
        return text;
    }
    return "";
  }
};

TEST_F(ViewTest, AStructOfSpansIsReadInPlaceWithEverySpanAligned) {
  for (std::size_t count :
       {std::size_t{3}, std::size_t{1000}, std::size_t{300'000}}) {  // the last in shared memory
    std::vector<std::int64_t> ids(count);
    std::vector<float> mask(count + 1, 0.5F);
    for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<std::int64_t>(i);
    auto ref = rt_->put(Batch{7, "a title", ids, {}, mask});
    ASSERT_TRUE(ref.ok()) << ref.status().to_string();
    auto view = rt_->objects().view(*ref, 20s);
    ASSERT_TRUE(view.ok()) << view.status().to_string();
    const Batch& batch = **view;
    EXPECT_EQ(batch.step, 7);
    EXPECT_EQ(batch.title, "a title");
    ASSERT_EQ(batch.ids.size(), count);
    ASSERT_EQ(batch.mask.size(), count + 1);
    EXPECT_TRUE(batch.none.empty());
    EXPECT_TRUE(is_aligned(batch.ids.data())) << count;
    EXPECT_TRUE(is_aligned(batch.mask.data())) << count;
    EXPECT_EQ(batch.ids[count - 1], static_cast<std::int64_t>(count) - 1);
    EXPECT_EQ(batch.mask[count], 0.5F);
    if (count == 300'000) {
      EXPECT_EQ(permissions(batch.ids.data()), "r--s") << "not copied";
    }
    ref = not_found("dropped");
    EXPECT_EQ(batch.ids[0], 0) << "the view keeps it";
  }
}

TEST_F(ViewTest, AVectorIsASpan) {
  for (std::size_t count : {std::size_t{0}, std::size_t{5}, std::size_t{500'000}}) {
    auto ref = rt_->put(std::vector<float>(count, 2.0F));
    auto view = rt_->objects().view(*ref, 20s);
    ASSERT_TRUE(view.ok()) << view.status().to_string();
    const std::span<const float> values = **view;
    ASSERT_EQ(values.size(), count);
    EXPECT_TRUE(is_aligned(values.data()));
    if (count > 0) {
      EXPECT_EQ(values[count - 1], 2.0F);
    }
  }
  EXPECT_EQ(rt_->objects().view(ObjectRef<std::vector<float>>()).status().code(),
            ErrorCode::kInvalidArgument);
}

TEST_F(ViewTest, AnActorTakesSpansAsParametersFromItsNodeAndAnother) {
  NodeId second = add_node();
  for (NodeId node : {rt_->cluster().node_id(), second}) {
    auto reader = keeper(node);
    const std::vector<std::int64_t> ids(200'000, 3);
    const std::vector<float> mask(200'000, 0.5F);
    auto ref = rt_->put(Batch{1, "t", ids, {}, mask});
    ASSERT_TRUE(ref.ok());
    EXPECT_EQ(get(reader.call(&Keeper::weigh, *ref)), 300'000.0);
    EXPECT_EQ(get(reader.call(&Keeper::weigh, Batch{1, "t", std::span(ids).first(2), {}, mask})),
              3.0);
  }
}

TEST_F(ViewTest, ASealedObjectCannotBeWritten) {
  auto ref = rt_->put(std::vector<float>(100'000, 1.0F));
  auto view = rt_->objects().view(*ref, 20s);
  ASSERT_TRUE(view.ok());
  auto* first = const_cast<volatile float*>((**view).data());
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGSEGV, SIG_DFL);
    *first = 2.0F;
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
  EXPECT_EQ(*first, 1.0F);
}

TEST_F(ViewTest, ACoroutineDoesNotBlockItsActorWhileAnObjectIsFetched) {
  NodeId second = add_node();
  auto maker = keeper(second);
  auto far = maker.call(&Keeper::produce, std::uint64_t{1}, std::uint64_t{1 << 19});
  ASSERT_EQ(rt_->wait(std::vector{far}, 1, 20s).ready.size(), 1u);
  ActorOptions options;
  options.node = rt_->cluster().node_id();
  options.max_concurrency = 4;
  auto waiter = rt_->spawn<Waiter>(options);
  ASSERT_TRUE(waiter.ok()) << waiter.status().to_string();
  nodes_[0]->signal(SIGSTOP);  // its node answers nothing
  auto reading = waiter->call(&Waiter::first_of, std::vector{far});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(get(waiter->call(&Waiter::answer)), 42);
  EXPECT_FALSE(reading.is_ready());
  nodes_[0]->signal(SIGCONT);
  EXPECT_EQ(get(reading), numbers(1, 1)[0]);
  EXPECT_EQ(get(waiter->call(&Waiter::first_of, std::vector{far})), numbers(1, 1)[0]);
}

TEST_F(ViewTest, ACoroutineDoesNotBlockItsActorWhileItsArgumentsAreFetched) {
  constexpr std::uint64_t kCount = 1 << 16;
  NodeId second = add_node();
  ActorOptions here;
  here.node = rt_->cluster().node_id();
  here.max_concurrency = 4;
  auto waiter = rt_->spawn<Waiter>(here);
  ASSERT_TRUE(waiter.ok()) << waiter.status().to_string();
  ActorOptions there;
  there.node = second;
  auto sender = rt_->spawn<Sender>(there);
  ASSERT_TRUE(sender.ok()) << sender.status().to_string();
  EXPECT_EQ(get(sender->call(&Sender::send, *waiter, kCount)),
            (std::vector<std::uint64_t>{kCount, kCount + 1}));
  nodes_[0]->signal(SIGSTOP);  // the sender's node answers nothing
  auto sending = sender->call(&Sender::send, *waiter, kCount);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(get(waiter->call(&Waiter::answer)), 42) << "other callers are served";
    support::pace(10ms);
  }
  EXPECT_EQ(get(waiter->call(&Waiter::counted)), kCount + 1)
      << "the one number has to wait for those before it";
  EXPECT_FALSE(sending.is_ready());
  nodes_[0]->signal(SIGCONT);
  EXPECT_EQ(get(sending), (std::vector<std::uint64_t>{2 * kCount + 1, 2 * kCount + 2}));
}

}  // namespace
}  // namespace runtime::test
