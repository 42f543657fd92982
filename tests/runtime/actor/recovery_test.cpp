// Results of tasks that are lost with the node, or the worker, that holds them.
#include <algorithm>
#include <fstream>

#include "cluster_fixture.h"
#include "runtime/call/stored_object.h"

namespace runtime::test {
namespace {

constexpr std::uint64_t kCount = 100'000;  // floats: in a store

class RecoveryTest : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    far_ = add_node();
  }
  /// A node that tasks for "far" run on.
  std::unique_ptr<Command> add_node() {
    auto state = rt_->cluster().state();
    const std::size_t before = state.ok() ? state->nodes.size() : 0;
    auto node = std::make_unique<Command>(
        std::vector<std::string>{STARLING_BIN_DIR "/starling", "start", "--address", address(),
                                 "--num-cpus", "2", "--resources", R"({"far": 4})", "--block"});
    EXPECT_TRUE(eventually([&] { return nodes() == before + 1; })) << node->output();
    return node;
  }
  std::size_t nodes() {
    auto state = rt_->cluster().state();
    return state.ok() ? state->nodes.size() : 0;
  }
  /// The far node dies with what it holds, and another takes its place.
  void replace_far() {
    far_->signal(SIGKILL);
    far_->wait();
    EXPECT_TRUE(eventually([&] { return nodes() == 1; }));
    far_ = add_node();
  }
  TaskOptions far(std::uint32_t max_retries = 3) const {
    TaskOptions options{.cpus = 0, .max_retries = max_retries};
    options.resources["far"] = 1;
    return options;
  }
  /// Not on a far node, which dies.
  ActorOptions here() const { return {.node = rt_->cluster().node_id()}; }
  std::string path(const std::string& name) const { return (root_ / name).string(); }
  static std::size_t lines(const std::string& file) {
    std::ifstream in(file);
    return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
  }
  /// What processes hold of all stores.
  std::uint64_t leased_bytes() {
    std::uint64_t bytes = 0;
    const auto list = rt_->objects().list();
    if (!list.ok()) return UINT64_MAX;
    for (const StoreInfo& store : list->stores) bytes += store.leased_bytes;
    return bytes;
  }
  /// Kills the first, which holds objects, and then the others. Returns once the first has ended
  /// and its node's store has heard of that, which it does in its own way.
  void kill_holder(pid_t holder, std::initializer_list<pid_t> others = {}) {
    const std::uint64_t before = leased_bytes();
    ASSERT_EQ(::kill(holder, SIGKILL), 0);
    for (const pid_t other : others) ASSERT_EQ(::kill(other, SIGKILL), 0);
    ASSERT_TRUE(eventually([&] { return ::kill(holder, 0) != 0; }));
    EXPECT_TRUE(eventually([&] { return leased_bytes() < before; }));
  }
  template <class T>
  void settled(const ObjectRef<T>& ref) {
    ASSERT_EQ(rt_->wait(std::vector{ref}, 1, 30s).ready.size(), 1u);
    ASSERT_TRUE(ref.state()->failure().ok()) << ref.state()->failure().to_string();
  }

  std::unique_ptr<Command> far_;
};

TEST_F(RecoveryTest, AResultLostWithItsNodeIsMadeAgainByGet) {
  const std::string runs = path("runs");
  auto numbers = rt_->task(far(), &make_noted, runs, kCount, 0.5f);
  settled(numbers);
  replace_far();
  auto values = rt_->get(numbers, 30s);
  ASSERT_TRUE(values.ok()) << values.status().to_string();
  EXPECT_EQ(*values, std::vector<float>(kCount, 0.5f));
  EXPECT_EQ(lines(runs), 2u);
  EXPECT_EQ(rt_->get(numbers, 30s)->size(), kCount);
  EXPECT_EQ(lines(runs), 2u) << "it is there again";
}

TEST_F(RecoveryTest, AChainIsMadeAgainFromItsBeginning) {
  const std::string runs = path("runs");
  ObjectRef<std::vector<float>> last;
  {
    auto first = rt_->task(far(), &make_noted, runs, kCount, 1.0f);
    auto second = rt_->task(far(), &scale_noted, runs, first, 2.0f);
    last = rt_->task(far(), &scale_noted, runs, second, 3.0f);
    settled(last);
  }
  EXPECT_EQ(lines(runs), 3u);
  replace_far();
  auto values = rt_->get(last, 60s);
  ASSERT_TRUE(values.ok()) << values.status().to_string();
  EXPECT_EQ(*values, std::vector<float>(kCount, 6.0f));
  EXPECT_EQ(lines(runs), 6u);
}

TEST_F(RecoveryTest, ATaskWhoseArgumentIsLostGetsItMadeAgain) {
  const std::string runs = path("runs");
  auto first = rt_->task(far(), &make_noted, runs, kCount, 1.0f);
  auto second = rt_->task(far(), &scale_noted, runs, first, 2.0f);
  settled(second);
  replace_far();
  auto sum = rt_->get(rt_->task(&sum_floats, second), 60s);
  ASSERT_TRUE(sum.ok()) << sum.status().to_string();
  EXPECT_EQ(*sum, 2.0 * kCount);
  EXPECT_EQ(lines(runs), 4u);
}

TEST_F(RecoveryTest, ADeadWorkersResultIsMadeAgainOnItsNode) {
  const std::string runs = path("runs");
  auto numbers = rt_->task(far(), &make_noted, runs, kCount, 0.5f);
  settled(numbers);
  pid_t worker = 0;
  std::ifstream(runs) >> worker;
  kill_holder(worker);
  auto values = rt_->get(numbers, 30s);
  ASSERT_TRUE(values.ok()) << values.status().to_string();
  EXPECT_EQ(*values, std::vector<float>(kCount, 0.5f));
  EXPECT_GE(lines(runs), 2u);
}

TEST_F(RecoveryTest, ATaskThatMayNotRunAgainLosesItsResultAndSaysSo) {
  const std::string runs = path("runs");
  auto numbers = rt_->task(far(0), &make_noted, runs, kCount, 0.5f);
  settled(numbers);
  const std::string id = numbers.state()->value().stored->location().id.short_hex();
  const std::string node = numbers.state()->value().stored->location().node.short_hex();
  replace_far();
  expect_failure(rt_->get(numbers, 30s).status(), ErrorCode::kObjectLost,
                 {id, "task make_noted", node, "max_retries"});
  EXPECT_EQ(lines(runs), 1u);
}

TEST_F(RecoveryTest, AttemptsAreBounded) {
  const std::string runs = path("runs");
  auto numbers = rt_->task(far(1), &make_noted, runs, kCount, 0.5f);
  settled(numbers);
  replace_far();
  auto second = rt_->task(far(), &sum_floats, numbers);  // brings it back without a copy here
  EXPECT_EQ(rt_->get(second, 30s).value_or(0), 0.5 * kCount);
  replace_far();
  expect_failure(rt_->get(rt_->task(far(), &sum_floats, numbers), 30s).status(),
                 ErrorCode::kObjectLost, {"sum_floats"});
  expect_failure(rt_->get(numbers, 30s).status(), ErrorCode::kObjectLost, {"max_retries"});
  EXPECT_EQ(lines(runs), 2u);
}

TEST_F(RecoveryTest, ABorrowerHasItMadeAgainByTheProcessThatRanTheTask) {
  const std::string runs = path("runs");
  auto numbers = rt_->task(far(), &make_noted, runs, kCount, 0.5f);
  settled(numbers);
  auto first = broker("first", here()), second = broker("second", here());
  ASSERT_TRUE(rt_->get(first.call(&Broker::keep, numbers)).ok());
  ASSERT_TRUE(rt_->get(second.call(&Broker::keep, get(first.call(&Broker::kept))))
                  .ok());  // by way of two others
  replace_far();
  EXPECT_EQ(get(first.call(&Broker::sum_kept)), 0.5 * kCount);
  EXPECT_EQ(get(second.call(&Broker::sum_kept)), 0.5 * kCount);
  EXPECT_EQ(rt_->get(numbers, 30s).value_or({}).size(), kCount);
  EXPECT_EQ(lines(runs), 2u) << "one run for all of them";
}

TEST_F(RecoveryTest, AMethodsArgumentsAreMadeAgainInItsTurn) {
  const std::string runs = path("runs");
  auto numbers = rt_->task(far(), &make_noted, runs, kCount, 0.5f);
  settled(numbers);
  replace_far();
  auto reader = broker("reader", here());
  auto sum = reader.call(&Broker::sum, numbers);
  auto view = reader.call(&Broker::sum_view, numbers);
  EXPECT_EQ(get(sum), 0.5 * kCount);
  EXPECT_EQ(get(view), 0.5 * kCount);
  EXPECT_EQ(lines(runs), 2u);
}

TEST_F(RecoveryTest, BorrowersOnAnotherNodeHaveItMadeAgainAgainAndAgain) {
  const std::string runs = path("runs");
  auto numbers = rt_->task(far(), &make_noted, runs, kCount, 0.5f);
  settled(numbers);
  replace_far();
  ActorOptions there{.resources = {{"far", 1}}};
  auto reader = broker("far reader", there);
  ASSERT_TRUE(rt_->get(reader.call(&Broker::keep, numbers)).ok());
  EXPECT_EQ(get(reader.call(&Broker::sum_kept)), 0.5 * kCount);
  EXPECT_EQ(lines(runs), 2u);
  pid_t worker = 0;
  std::ifstream in(runs);
  in >> worker >> worker;  // the second: it has what was made again
  kill_holder(worker);
  EXPECT_EQ(get(reader.call(&Broker::sum_kept)), 0.5 * kCount);
  EXPECT_GE(lines(runs), 3u);
}

TEST_F(RecoveryTest, WithoutTheProcessThatRanTheTaskItIsLostAndSaysWhy) {
  const std::string runs = path("runs");
  auto delegator = make<Delegator>();
  auto numbers = get(delegator.call(&Delegator::make, runs, kCount, 0.5f));  // on this node
  pid_t worker = 0;
  std::ifstream(runs) >> worker;
  kill_holder(worker, {delegator.pid()});
  expect_failure(rt_->get(numbers, 30s).status(), ErrorCode::kObjectLost,
                 {"task make_noted", "it is not made again: the process that had its task run"});
  EXPECT_EQ(lines(runs), 1u);
}

TEST_F(RecoveryTest, AnActorsResultIsLostWithItsMakersName) {
  ActorOptions there{.resources = {{"far", 1}}};
  auto maker = broker("far", there);
  auto numbers = maker.call(&Broker::make, kCount, 0.5f);
  settled(numbers);
  const std::string node = numbers.state()->value().stored->location().node.short_hex();
  replace_far();
  expect_failure(rt_->get(numbers, 30s).status(), ErrorCode::kObjectLost,
                 {"Broker " + maker.id().short_hex() + ": make", node, "actor's state"});
}

}  // namespace
}  // namespace runtime::test
