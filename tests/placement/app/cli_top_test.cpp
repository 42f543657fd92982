#include "placement/app/cli_top.h"

#include <iterator>
#include <sstream>

#include "tests/placement/app/fake_cluster.h"

namespace placement {
namespace {

/// The node gives one load after the other, and the last one from then on.
class TopCommand : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;
  using Loads = std::vector<runtime::Result<runtime::NodeLoad>>;

  /// What the node says at that time of its clock.
  static runtime::NodeLoad load_at(std::chrono::nanoseconds at,
                                   std::vector<runtime::ActorLoad> actors) {
    runtime::NodeLoad load;
    load.at_ns = static_cast<std::uint64_t>(at.count());
    load.actors = std::move(actors);
    return load;
  }
  static runtime::ActorLoad actor_load(runtime::ActorId actor, std::uint64_t calls,
                                       std::chrono::nanoseconds busy = {}) {
    runtime::ActorLoad load;
    load.actor = actor;
    load.class_name = "Counter";
    load.calls = calls;
    load.busy_ns = static_cast<std::uint64_t>(busy.count());
    return load;
  }
  Said top(Loads loads) {
    cluster_.on_observe<runtime::control::ReadLoad>([&](const auto&) {
      const runtime::Result<runtime::NodeLoad> first = loads.front();
      if (loads.size() > 1) loads.erase(loads.begin());
      return first;
    });
    options_.address = cluster_.address();
    return said_by([&] { return top_command(options_); });
  }
  /// The words of the line about it; none: there is no such line.
  static Words line_of(const std::string& text, const std::string& short_id) {
    std::istringstream lines(text);
    for (std::string row; std::getline(lines, row);) {
      if (!row.starts_with(short_id)) continue;
      std::istringstream words(row);
      return Words(std::istream_iterator<std::string>(words), {});
    }
    return {};
  }

  FakeCluster cluster_;
  TopOptions options_{.address = "", .once = true};
  const runtime::ActorId first_ = runtime::ActorId::random();
  const runtime::ActorId second_ = runtime::ActorId::random();
};

using namespace std::chrono_literals;

TEST_F(TopCommand, RatesAreOfTheTimeBetweenTwoLooks) {
  runtime::NodeLoad before = load_at(7s, {actor_load(first_, 100, 1s), actor_load(second_, 0)});
  before.numbers = {{"machine_busy_seconds", 50}};
  before.classes = {{.name = "Counter", .calls = 100, .buckets = {}}};
  runtime::NodeLoad now =
      load_at(7500ms, {actor_load(first_, 150, 1250ms), actor_load(second_, 500)});
  now.numbers = {{"machine_busy_seconds", 51},
                 {"cpus", 4},
                 {"memory_used_bytes", 1 << 30},
                 {"memory_limit_bytes", 2.0 * (1 << 30)},
                 {"store_capacity_bytes", 1 << 30},
                 {"store_leased_bytes", 1 << 28},
                 {"store_published_bytes", 1 << 28},
                 {"actors_serving", 2},
                 {"workers_idle", 1},
                 {"workers_actor", 2}};
  now.classes = {{.name = "Counter", .calls = 650, .buckets = {}, .waiting = 9}};
  const Said said = top({before, now});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(line_of(said.out, cluster_.node().id.short_hex()),
            (Words{cluster_.node().id.short_hex(), cluster_.address(), "2.0/4", "1.00/2.00",
                   "0.50/1.00", "2", "3", "1100", "9"}));
  const std::string node = cluster_.node().id.short_hex();
  EXPECT_EQ(line_of(said.out, first_.short_hex()),
            (Words{first_.short_hex(), "Counter", node, "0", "100", "50%", "0", "0"}));
  EXPECT_EQ(line_of(said.out, second_.short_hex()),
            (Words{second_.short_hex(), "Counter", node, "0", "1000", "0%", "0", "0"}));
}

TEST_F(TopCommand, TheBusiestComeFirstAsManyAsAreWanted) {
  options_.rows = 1;
  const Said said = top({load_at(1s, {actor_load(first_, 0), actor_load(second_, 0)}),
                         load_at(2s, {actor_load(first_, 1), actor_load(second_, 2)})});
  EXPECT_FALSE(line_of(said.out, second_.short_hex()).empty()) << said.out;
  EXPECT_TRUE(line_of(said.out, first_.short_hex()).empty()) << said.out;
}

TEST_F(TopCommand, WhatHasBegunAnewHasNoRateYet) {
  const Said said = top({load_at(1s, {actor_load(first_, 100, 9s)}),
                         load_at(2s, {actor_load(first_, 10, 1s), actor_load(second_, 10, 1s)})});
  for (const runtime::ActorId actor : {first_, second_}) {
    const Words words = line_of(said.out, actor.short_hex());
    ASSERT_EQ(words.size(), 8u) << said.out;
    EXPECT_EQ(words[4], "0");
    EXPECT_EQ(words[5], "0%");
  }
  const Said late = top({runtime::unavailable("busy"), load_at(2s, {actor_load(first_, 10)})});
  EXPECT_EQ(late.code, 0) << late.err;
  EXPECT_EQ(line_of(late.out, first_.short_hex()).size(), 8u) << late.out;
}

TEST_F(TopCommand, AMethodThatStillRunsCountsAsBusy) {
  runtime::ActorLoad runs = actor_load(first_, 3);
  runs.running = "Counter.sleep";
  runs.running_ns = 2'000'000'000;
  const Said said = top({load_at(1s, {runs}), load_at(2s, {runs})});
  const Words words = line_of(said.out, first_.short_hex());
  ASSERT_EQ(words.size(), 12u) << said.out;
  EXPECT_EQ(words[5], "100%") << "no call of it has ended";
  expect_said(said.out, {"Counter.sleep for 2.0 s"});
}

TEST_F(TopCommand, ASilentNodeHasALineThatSaysWhy) {
  const std::string gone = cluster_.add_node().node.short_hex();
  const Said said = top({load_at(1s, {}), load_at(2s, {})});
  EXPECT_EQ(said.code, 1);
  expect_said(said.out, {gone + " 127.0.0.1:1           no answer: "});
  expect_said(said.err, {"node " + gone});
}

}  // namespace
}  // namespace placement
