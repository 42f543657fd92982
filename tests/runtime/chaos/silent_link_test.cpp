// Machines that fall silent: no socket breaks, nothing is refused, packets vanish.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "ledger.h"
#include "switched_link.h"
#include "tests/runtime/actor/command.h"
#include "tests/support/eventually.h"
#include "tests/support/pauses.h"
#include "tests/support/temporary_folder.h"

namespace runtime::test {
namespace {

using namespace std::chrono_literals;

class SilentLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    link_ = SwitchedLink::create();
    if (!link_) GTEST_SKIP() << "no second network can be made here (it takes root and `ip netns`)";
    rt_ = make_driver(root_, {"--num-cpus", "4", "--bind", link_->near()});
    const Status status = rt_->start();
    ASSERT_TRUE(status.ok()) << status.to_string();
    const std::string head = rt_->cluster().state()->nodes.at(0).address;
    far_ = std::make_unique<Command>(std::vector<std::string>{
        "ip", "netns", "exec", link_->name_of_far_side(), STARLING_BIN_DIR "/starling", "start",
        "--address", head, "--num-cpus", "4", "--block"});
    ASSERT_TRUE(support::eventually([&] { return nodes().size() == 2; })) << far_->output();
    ActorOptions there;
    there.concurrency_groups = {{"stream", 1}};
    for (const NodeInfo& node : nodes()) {
      if (!node.is_head) there.node = node.node;
    }
    auto made = rt_->spawn<Ledger>(there, (root_ / "entries").string());
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    ledger_ = *made;
    ASSERT_TRUE(rt_->get(ledger_.call(&Ledger::record, 0, 1)).ok());
  }
  void TearDown() override {
    if (link_) link_->plug_in();
    rt_.reset();
    far_.reset();
  }
  std::vector<NodeInfo> nodes() const {
    auto state = rt_->cluster().state();
    return state.ok() ? state->nodes : std::vector<NodeInfo>();
  }

  support::TemporaryFolder folder_;
  const std::filesystem::path& root_ = folder_.path();
  std::unique_ptr<SwitchedLink> link_;
  std::unique_ptr<Runtime> rt_;
  std::unique_ptr<Command> far_;
  ActorHandle<Ledger> ledger_;
};

TEST_F(SilentLinkTest, ACutOfEightSecondsCostsTimeOnly) {
  constexpr int kCalls = 8000;
  auto stream = ledger_.call(&Ledger::count_to, 100'000);
  ASSERT_TRUE(stream.next().ok());
  std::vector<ObjectRef<int>> calls;
  std::atomic<int> sent{1};
  std::thread cut([&] {
    EXPECT_TRUE(support::eventually([&] { return sent > kCalls / 20; }));
    link_->unplug();
    support::hold_for(8s);  // shorter than what ends a connection
    link_->plug_in();
  });
  for (int i = 2; i <= kCalls; ++i) {
    calls.push_back(ledger_.call(CallOptions{.timeout = 60s}, &Ledger::record, 0, i));
    sent = i;
    if (i % 4 == 0) support::pace(1ms);
  }
  cut.join();
  EXPECT_EQ(
      rt_->get(ledger_.call(CallOptions{.timeout = 60s}, &Ledger::record, 1, 1), 60s).value_or(0),
      1);
  for (int i = 2; i <= kCalls; ++i) {
    const Result<int> result = rt_->get(calls[static_cast<std::size_t>(i - 2)], 60s);
    ASSERT_TRUE(result.ok()) << i << ": " << result.status().to_string();
    ASSERT_EQ(*result, i);
  }
  int expected = 1;
  for (auto value = stream.next(); value.ok() && *value; value = stream.next())
    ASSERT_EQ(**value, ++expected);
  EXPECT_TRUE(stream.status().ok()) << stream.status().to_string();
  EXPECT_EQ(expected, 100'000);
  const auto ran = EntryFile::read((root_ / "entries").string());
  EXPECT_EQ(std::count_if(ran.begin(), ran.end(),
                          [](const LedgerEntry& entry) { return entry.caller == 0; }),
            kCalls)
      << "each once";
  EXPECT_EQ(nodes().size(), 2u) << "the node is no less a member";
}

class SilentLinkTiming : public SilentLinkTest {};

TEST_F(SilentLinkTiming, AHealedLinkIsUsedSoonerThanTcpWould) {
  auto call = ledger_.call(CallOptions{.timeout = 60s}, &Ledger::record, 0, 1);
  ASSERT_TRUE(rt_->get(call, 60s).ok());
  link_->unplug();
  auto waiting = ledger_.call(CallOptions{.timeout = 60s}, &Ledger::record, 0, 2);
  support::hold_for(8s);  // TCP would wait about as long again
  link_->plug_in();
  const auto healed = std::chrono::steady_clock::now();
  EXPECT_TRUE(rt_->get(waiting, 60s).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - healed, 6s);
}

TEST_F(SilentLinkTest, WhatWaitsForAMachineThatIsGoneIsTold) {
  auto far_object = ledger_.call(&Ledger::text, std::uint64_t{1 << 20});
  ASSERT_EQ(rt_->wait(std::vector{far_object}, 1, 20s).ready.size(), 1u);
  auto stream = ledger_.call(&Ledger::count_to, 1'000'000'000);
  ASSERT_TRUE(stream.next().ok());
  link_->unplug();
  const auto begin = std::chrono::steady_clock::now();
  auto call = ledger_.call(CallOptions{.timeout = 10min}, &Ledger::record, 0, 2);
  std::thread reader([&] {
    const Status lost = rt_->get(far_object, 10min).status();
    EXPECT_TRUE(lost.code() == ErrorCode::kObjectLost || lost.code() == ErrorCode::kUnavailable)
        << lost.to_string();
  });
  std::thread listener([&] {
    auto value = stream.next();
    while (value.ok() && *value) value = stream.next();
    EXPECT_EQ(value.status().code(), ErrorCode::kActorDied) << value.status().to_string();
  });
  const Status status = rt_->get(call, 10min).status();
  EXPECT_EQ(status.code(), ErrorCode::kActorDied) << status.to_string();
  EXPECT_NE(status.message().find("silent"), std::string::npos) << status.to_string();
  listener.join();
  reader.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5min) << "nothing waits for its ten minutes";
}

}  // namespace
}  // namespace runtime::test
