// The addresses of a cluster, and what is left of it when it is stopped.
#include <sys/stat.h>

#include <fstream>
#include <set>
#include <sstream>

#include "fixture.h"
#include "runtime/process/session.h"

namespace runtime::test {
namespace {

namespace fs = std::filesystem;

class AddressesTest : public NetworkTest {
 protected:
  void expect_one_port_each(int machines) {
    for (int i = 0; i < machines; ++i)
      EXPECT_EQ(network_->machine(i).listening_ports(), std::vector<int>{6500}) << "machine " << i;
  }
  /// Processes in the machine's namespace, with what they run.
  std::string processes_on(int machine) const {
    struct stat own {};
    EXPECT_EQ(::fstat(network_->machine(machine).name_space(), &own), 0);
    std::string found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      struct stat info {};
      if (name.find_first_not_of("0123456789") != std::string::npos ||
          ::stat((entry.path() / "ns/net").c_str(), &info) != 0 || info.st_ino != own.st_ino)
        continue;
      found += name;
      for (const std::string& word : command_line_of(std::stoi(name))) found += " " + word;
      found += "\n";
    }
    return found;
  }
  /// Lines of tables of open TCP and UDP sockets in the machine's namespace, but those of
  /// connections whose both ends have closed.
  std::string sockets_on(int machine) const {
    std::string found;
    for (const Machine::Socket& socket : network_->machine(machine).sockets()) {
      if (socket.state != "06") found += socket.table + ": " + socket.line + "\n";
    }
    return found;
  }
  static std::set<std::string> shared_memory() {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator("/dev/shm")) names.insert(entry.path());
    return names;
  }
  static std::string mounts() {
    std::ifstream file("/proc/self/mountinfo");
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
};

TEST_F(AddressesTest, AClusterOfIpv6NeedsOnePortPerNode) {
  start({.machines = 4, .ipv6 = true, .arguments = {"--num-cpus", "4"}});
  if (IsSkipped()) return;
  for (int machine : {1, 2}) begin_load(machine, {.per_second = 10});
  ASSERT_TRUE(eventually(
      [&] {
        return count_ok(history(), Op::kEcho, 0, INT64_MAX) > 100 &&
               count_ok(history(), Op::kCreate, 0, INT64_MAX) > 4;
      },
      40s));
  expect_one_port_each(4);
  for (const Json& node : cluster_->list(3, "nodes"))
    EXPECT_TRUE(node.at("address").get<std::string>().starts_with("[fd77::")) << node;
  end_loads();
  expect_promises_kept(3);
}

TEST_F(AddressesTest, ANodeOnAllAddressesIsReachedAtTheOneItAdvertises) {
  start({.machines = 3, .everywhere = true, .arguments = {"--num-cpus", "4"}});
  if (IsSkipped()) return;
  begin_load(2, {.per_second = 10, .kinds = "aec"});
  ASSERT_TRUE(eventually([&] { return count_ok(history(), Op::kEcho, 0, INT64_MAX) > 100; }, 40s));
  expect_one_port_each(3);
  std::set<std::string> addresses;
  for (const Json& node : cluster_->list(1, "nodes")) addresses.insert(node.at("address"));
  EXPECT_EQ(addresses, (std::set<std::string>{cluster_->address(0), cluster_->address(1),
                                              cluster_->address(2)}));
  // The other family leads to the same node.
  const Finished other = cluster_->run(
      1, {"env", "STARLING_SESSION_ROOT=" + folder_.file("other"), starling_program(), "list",
          "nodes", "--address", "[" + network_->machine(0).ipv6() + "]:6500"});
  EXPECT_EQ(other.code, 0) << other.output;
  end_loads();
  expect_promises_kept(1);
}

TEST_F(AddressesTest, StopLeavesNothing) {
  const auto memory_before = shared_memory();
  const std::string mounts_before = mounts();
  make_network(3);
  if (IsSkipped()) return;
  cluster_ = std::make_unique<Cluster>(*network_, folder_.path(), ClusterOptions{.machines = 3});
  // As daemons, as people start them.
  const auto start_daemon = [&](int machine, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"start", "--bind", network_->machine(machine).ipv4(),
                                         "--port", "6500", "--num-cpus", "4"});
    const Finished started = cluster_->starling(machine, arguments);
    ASSERT_EQ(started.code, 0) << started.output;
  };
  start_daemon(0, {"--head"});
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path() / "s0")) {
    if (entry.path().filename() == "token") fs::copy_file(entry.path(), cluster_->token_file());
  }
  for (int machine : {1, 2}) start_daemon(machine, {"--address", cluster_->address(0)});
  ASSERT_TRUE(cluster_->wait_for_members(3, 20s, 1));
  Program& client = begin_load(1, {.per_second = 20});
  ASSERT_TRUE(eventually(
      [&] {
        return count_ok(history(), Op::kPublish, 0, INT64_MAX) > 5 &&
               count_ok(history(), Op::kCreate, 0, INT64_MAX) > 1;
      },
      40s));
  const Finished stopped = cluster_->starling(0, {"stop", "--force"});
  EXPECT_EQ(stopped.code, 0) << stopped.output;
  EXPECT_TRUE(client.wait(60s)) << "the driver does not notice that its cluster is gone";
  for (int machine = 0; machine < 3; ++machine) {
    EXPECT_TRUE(eventually([&] { return processes_on(machine).empty(); })) << processes_on(machine);
    EXPECT_TRUE(eventually([&] { return sockets_on(machine).empty(); })) << sockets_on(machine);
    for (const auto& entry :
         fs::recursive_directory_iterator(folder_.path() / ("s" + std::to_string(machine)))) {
      // Logs, and the marks by which a later start knows their folders as its own.
      const fs::path name = entry.path().filename();
      const bool stays = entry.is_directory() || name.extension() == ".log" || name == "last" ||
                         name == kNodeLock || name == kRootMark;
      EXPECT_TRUE(stays) << entry.path() << " was left behind";
      EXPECT_NE(entry.path().filename().string().substr(0, 6), "spill-");
      EXPECT_NE(entry.path().filename(), "journal");
    }
  }
  EXPECT_EQ(shared_memory(), memory_before);
  EXPECT_EQ(mounts(), mounts_before);
}

}  // namespace
}  // namespace runtime::test
