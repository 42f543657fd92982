// Calls to a head that is killed again and again, for as long as a test says.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <random>
#include <thread>

#include "control_calls.h"
#include "fixture.h"
#include "runtime/runtime.h"
#include "tests/support/pauses.h"

namespace runtime::test {

class ControlCallsTest : public NetworkTest {
 protected:
  /// The driver talks to a node next to the head, or to another one.
  void call_while_heads_die(std::chrono::milliseconds duration, int machine) {
    start_here({.machines = 2, .arguments = {"--num-cpus", "4"}});
    if (HasFatalFailure()) return;
    static char name[] = "control-calls";
    static char* argv[] = {name, nullptr};
    RuntimeOptions options;
    options.address = cluster_->address(machine);
    options.start_cluster = false;
    // It is on the machine of that node, and has its objects in the node's store.
    const std::string sessions = (cluster_->folder() / ("s" + std::to_string(machine))).string();
    support::ScopedVariable root("STARLING_SESSION_ROOT", sessions.c_str());
    support::ScopedVariable token("STARLING_TOKEN_FILE", cluster_->token_file().c_str());
    Runtime rt(1, argv, options);
    const Status started = rt.start();
    ASSERT_TRUE(started.ok()) << started.to_string();

    std::atomic<bool> ends{false};
    std::atomic<int> kills{0};
    std::thread killer([&] {
      std::mt19937_64 random(static_cast<std::uint64_t>(now_us()));
      while (!ends) {
        support::pace(std::chrono::milliseconds(500 + random() % 1000));
        // On a busy machine, a head that is killed again and again before it is up would never
        // answer.
        if (!rt.kv().put("killer", "asks").ok()) continue;
        const pid_t head = cluster_->head();
        if (ends || head <= 0) continue;
        ::kill(head, SIGKILL);
        ++kills;
      }
    });
    const std::vector<ControlCall> calls = make_control_calls(rt, duration);
    ends = true;
    killer.join();
    const auto slowest = std::max_element(
        calls.begin(), calls.end(),
        [](const auto& a, const auto& b) { return a.end - a.begin < b.end - b.begin; });
    ASSERT_NE(slowest, calls.end());
    std::printf("%zu calls, %d heads killed; the slowest took %lld ms: %s\n", calls.size(),
                kills.load(), static_cast<long long>((slowest->end - slowest->begin) / 1000),
                slowest->to_string().c_str());
    EXPECT_GT(kills.load(), 2);
    EXPECT_GT(calls.size(), 50u);  // thousands on an idle machine
    const std::vector<std::string> wrong = control_violations(calls);
    for (std::size_t i = 0; i < wrong.size() && i < 20; ++i) ADD_FAILURE() << wrong[i];
    EXPECT_EQ(wrong.size(), 0u);
  }
};

}  // namespace runtime::test
