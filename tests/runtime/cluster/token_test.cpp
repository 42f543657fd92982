// The cluster's token is changed while the cluster works.
#include <fstream>

#include "fixture.h"
#include "tests/support/pauses.h"

namespace runtime::test {
namespace {

class TokenTest : public NetworkTest {
 protected:
  /// Returns the new one, which the machines but the head's have for their commands and new nodes
  /// from now on.
  std::string change(int machine, const std::string& grace) {
    const std::string out = folder_.file("changed");
    const Finished changed =
        cluster_->run(machine, {"/bin/sh", "-c",
                                "exec \"$0\" token --new --grace " + grace + " --address " +
                                    cluster_->address(machine) + " > " + out,
                                starling_program()});
    EXPECT_EQ(changed.code, 0) << changed.output;
    EXPECT_NE(changed.output.find("the one before counts for"), std::string::npos)
        << changed.output;
    std::string token;
    std::ifstream(out) >> token;
    EXPECT_EQ(token.size(), 64u);
    return token;
  }
  void distribute(const std::string& token) {
    std::ofstream(cluster_->token_file(), std::ios::trunc) << token;
  }
  std::string session_token(int machine) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             cluster_->folder() / ("s" + std::to_string(machine)))) {
      if (entry.path().filename() != "token") continue;
      std::string token;
      std::ifstream(entry.path()) >> token;
      return token;
    }
    return "";
  }
};

TEST_F(TokenTest, IsChangedUnderALoadWhileHeadsAndWorkersDie) {
  start({.machines = 3, .arguments = {"--num-cpus", "4"}});
  if (IsSkipped()) return;
  begin_load(1, {.tallies = 3, .per_second = 20, .kinds = "aep"});
  begin_load(2, {.tallies = 3, .per_second = 20, .kinds = "aep"});
  std::string old;
  std::ifstream(cluster_->token_file()) >> old;
  const std::string changed = change(2, "5s");
  EXPECT_NE(changed, old);
  // All nodes have it, also on disk.
  for (int machine = 0; machine < 3; ++machine)
    EXPECT_TRUE(eventually([&] { return session_token(machine) == changed; })) << machine;
  // A process that comes after the old one's time uses the new one: workers and the head.
  support::hold_for(6s);
  const std::int64_t after = now_us();
  const pid_t head = cluster_->head();
  ::kill(head, SIGKILL);
  for (int machine = 0; machine < 3; ++machine) {
    for (const pid_t worker : cluster_->workers(machine)) ::kill(worker, SIGKILL);
  }
  EXPECT_TRUE(eventually([&] { return cluster_->head() > 0 && cluster_->head() != head; }, 40s));
  EXPECT_TRUE(
      eventually([&] { return count_ok(history(), Op::kAdd, after, INT64_MAX) > 20; }, 40s));
  // The old one is worth nothing any more, the new one is.
  const Finished refused = cluster_->starling(2, {"list", "nodes"});
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.output.find("the token was changed"), std::string::npos) << refused.output;
  cluster_->kill_node(1);
  EXPECT_FALSE(cluster_->start_node(1).ok());
  distribute(changed);
  EXPECT_EQ(cluster_->starling(2, {"list", "nodes"}).code, 0);
  expect_started(1);
  EXPECT_TRUE(cluster_->wait_for_members(3, 20s));
  clients_.erase(clients_.begin());  // its node died
  end_loads();
  expect_promises_kept(2);
}

TEST_F(TokenTest, AClusterThatStartsAgainHasTheNewOne) {
  start_here({.machines = 1});
  std::string old;
  std::ifstream(cluster_->token_file()) >> old;
  const std::string changed = change(0, "5s");
  EXPECT_TRUE(eventually([&] { return session_token(0) == changed; }));
  const pid_t head = cluster_->head();
  cluster_->kill_node(0);
  EXPECT_TRUE(eventually([&] { return ::kill(head, 0) != 0; }));
  support::hold_for(5s);  // for which the old one counts
  expect_started(0);
  EXPECT_EQ(session_token(0), changed);
  EXPECT_EQ(cluster_->starling(0, {"list", "nodes"}).code, 0);
  distribute(old);
  const Finished refused =
      cluster_->run(0, {"/bin/sh", "-c",
                        "STARLING_TOKEN_FILE=" + cluster_->token_file().string() +
                            " exec \"$0\" list nodes "
                            "--address " +
                            cluster_->address(0),
                        starling_program()});
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.output.find("the token was changed"), std::string::npos) << refused.output;
}

// As if the node next to the head had died between writing the next token down and the change. Also
// as if it had died between the change and hearing of it.
TEST_F(TokenTest, ANodeThatAloneKnowsOfAChangeStartsEitherWay) {
  start_here({.machines = 1});
  const std::filesystem::path file = cluster_->journal() / "cluster.json";
  const auto write = [&](const std::string& token, const std::string& next) {
    Json json = Json::parse(std::ifstream(file));
    json["token"] = token;
    json["next_token"] = next;
    std::ofstream(file, std::ios::trunc) << json.dump();
  };
  std::string old;
  std::ifstream(cluster_->token_file()) >> old;
  const std::string never = std::string("6f1d2b9c04e87a5335c1e0d9f7a2b846") + "e29b74a8513f06dc";
  cluster_->kill_node(0);
  write(old, never);
  expect_started(0);
  EXPECT_EQ(session_token(0), old);
  const Json kept = Json::parse(std::ifstream(file));
  EXPECT_FALSE(kept.contains("next_token")) << "the head had not recorded it";
  const std::string changed = change(0, "5s");
  EXPECT_TRUE(eventually([&] { return session_token(0) == changed; }));
  cluster_->kill_node(0);
  support::hold_for(5s);  // for which the old one counts
  write(old, changed);
  expect_started(0);
  EXPECT_TRUE(eventually([&] { return session_token(0) == changed; }));
  EXPECT_EQ(cluster_->starling(0, {"list", "nodes"}).code, 0);
}

TEST_F(TokenTest, WhatCannotBeTheTokenIsRefusedWithTheCause) {
  start_here({.machines = 1});
  const auto refusal = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"token", "--new"});
    const Finished refused = cluster_->starling(0, std::move(arguments));
    EXPECT_NE(refused.code, 0) << refused.output;
    return refused.output;
  };
  const std::string weak = folder_.file("weak");
  std::ofstream(weak) << "guess\n";
  EXPECT_NE(refusal({"--from", weak}).find("easy to guess"), std::string::npos);
  EXPECT_NE(refusal({"--from", folder_.file("none")}).find("none"), std::string::npos);
  EXPECT_NE(refusal({"--grace", "0"}).find("5 s at least"), std::string::npos);
  EXPECT_NE(refusal({"--grace", "soon"}).find("soon"), std::string::npos);
  EXPECT_NE(refusal({"--submitter"}).find("--submitter"), std::string::npos);
}

}  // namespace
}  // namespace runtime::test
