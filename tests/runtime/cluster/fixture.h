// Fixture of the tests of whole clusters on a network.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster.h"
#include "load.h"
#include "tests/support/temporary_folder.h"

namespace runtime::test {

class NetworkTest : public ::testing::Test {
 protected:
  /// Skips the test where there can be no network.
  void make_network(int machines, const std::vector<int>& delaying = {}) {
    auto made = Network::create(machines, delaying);
    if (!made.ok()) GTEST_SKIP() << made.status().message();
    network_ = std::move(*made);
  }
  void start(ClusterOptions options) {
    make_network(options.machines);
    if (IsSkipped()) return;
    cluster_ = std::make_unique<Cluster>(*network_, folder_.path(), std::move(options));
    const Status status = cluster_->start();
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  /// On addresses of the loopback device: no faults of the network, and no need to be root.
  void start_here(ClusterOptions options) {
    network_ = Network::on_loopback(options.machines);
    options.port = free_port();
    cluster_ = std::make_unique<Cluster>(*network_, folder_.path(), std::move(options));
    const Status status = cluster_->start();
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  void expect_started(int machine) {
    const Status status = cluster_->start_node(machine);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
  void TearDown() override {
    if (!cluster_) return;
    network_->heal();
    clients_.clear();
    cluster_->stop();
    if (HasFailure()) std::fprintf(stderr, "%s", cluster_->logs(40).c_str());
  }

  std::string history_file() const { return folder_.file("history"); }
  History history() const { return History::read(history_file()); }
  /// One without a listener on any address.
  static int free_port() {
    FileDescriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    return ntohs(address.sin_port);
  }
  /// Begins a load on a machine and waits until it is on its way.
  Program& begin_load(int machine, LoadOptions options, std::vector<std::string> environment = {}) {
    options.history = history_file();
    if (options.client == 0) options.client = ++last_client_;
    clients_.push_back(cluster_->launch(machine, load_command(options), std::move(environment)));
    Program& client = *clients_.back();
    EXPECT_TRUE(eventually(
        [&] { return client.output().find("begun") != std::string::npos || !client.runs(); }, 40s))
        << client.output();
    return client;
  }
  /// Ends the loads, each in order.
  void end_loads() {
    for (const auto& client : clients_) client->signal(SIGTERM);
    for (const auto& client : clients_) {
      if (!client->wait(40s)) ADD_FAILURE() << "a client does not end: " << client->output();
    }
  }
  /// How many operations of a kind were answered well between two moments.
  static int count_ok(const History& history, Op op, std::int64_t from, std::int64_t to) {
    int count = 0;
    for (const Event& event : history.events)
      count += event.op == op && event.ok() && event.begin >= from && event.end <= to ? 1 : 0;
    return count;
  }
  /// When the first operation of the kind that began after `from` had gone well; -1: none has.
  static std::int64_t first_ok(const History& history, Op op, std::int64_t from) {
    for (const Event& event : history.events) {
      if (event.op == op && event.ok() && event.begin >= from) return event.end;
    }
    return -1;
  }
  /// What is there in the end, as asked from a machine, against the history.
  void expect_promises_kept(int machine, const std::string& note = {}) {
    const std::string outcome_file = folder_.file("outcome");
    const Finished verified =
        cluster_->run(machine, {own_program(), "--verify", history_file(), outcome_file}, 150s);
    ASSERT_EQ(verified.code, 0) << note << verified.output;
    auto outcome = read_outcome(outcome_file);
    ASSERT_TRUE(outcome.ok()) << note << outcome.status().to_string();
    const History asked = history();
    for (const std::string& violation : violations(asked, *outcome))
      ADD_FAILURE() << note << violation;
  }

  support::TemporaryFolder folder_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<std::unique_ptr<Program>> clients_;
  int last_client_ = 0;
};

}  // namespace runtime::test
