#include "network.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "delaying_link.h"

namespace runtime::test {
namespace {

/// A namespace that nothing is in yet.
FileDescriptor new_name_space() {
  FileDescriptor made;
  std::thread([&made] {
    if (::unshare(CLONE_NEWNET) == 0)
      made.reset(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  }).join();
  return made;
}

}  // namespace

Status run_in(int name_space, const std::vector<std::string>& argv, const std::string& input) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0)
    return errno_status(errno, "pipe");
  std::vector<char*> pointers;
  for (const std::string& word : argv) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setns(name_space, CLONE_NEWNET) != 0) ::_exit(126);
    ::dup2(in[0], 0);
    ::dup2(out[1], 1);
    ::dup2(out[1], 2);
    ::execvp(pointers[0], pointers.data());
    ::_exit(127);
  }
  FileDescriptor to(in[1]), from(out[0]);
  ::close(in[0]);
  ::close(out[1]);
  const bool sent =
      ::write(to.get(), input.data(), input.size()) == static_cast<ssize_t>(input.size());
  to.reset();
  std::string text;
  char block[4096];
  for (ssize_t got = ::read(from.get(), block, sizeof block); got > 0;
       got = ::read(from.get(), block, sizeof block))
    text.append(block, static_cast<std::size_t>(got));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (sent && WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return unavailable(
      "`" + argv[0] + "` failed" +
      (WIFEXITED(status) && WEXITSTATUS(status) == 127 ? ": it is not installed" : ": " + text));
}

void Machine::inside(const std::function<void()>& work) const {
  std::thread([&] {
    if (is_here() || ::setns(name_space_.get(), CLONE_NEWNET) == 0) work();
  }).join();
}

std::vector<Machine::Socket> Machine::sockets() const {
  std::vector<Socket> found;
  inside([&found] {
    for (const char* name : {"tcp", "tcp6", "udp", "udp6"}) {
      std::ifstream table(std::string("/proc/thread-self/net/") + name);
      std::string line;
      std::getline(table, line);
      while (std::getline(table, line)) {
        std::istringstream words(line);
        std::string slot, local, remote, state;
        words >> slot >> local >> remote >> state;
        found.push_back({name, local, state, line});
      }
    }
  });
  return found;
}

std::vector<int> Machine::listening_ports() const {
  std::set<int> ports;
  for (const Socket& socket : sockets()) {
    if (socket.table.starts_with("tcp") && socket.state == "0A")
      ports.insert(std::stoi(socket.local.substr(socket.local.rfind(':') + 1), nullptr, 16));
  }
  return {ports.begin(), ports.end()};
}

Result<std::unique_ptr<Network>> Network::create(int count, const std::vector<int>& delaying) {
  if (::geteuid() != 0) return unavailable("only root can make network namespaces");
  std::unique_ptr<Network> network(new Network);
  if (Status status = network->build(count, delaying); !status.ok()) return status;
  return network;
}

std::unique_ptr<Network> Network::on_loopback(int count) {
  std::unique_ptr<Network> network(new Network);
  network->faults_.resize(static_cast<std::size_t>(count));
  network->link_of_.resize(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    network->machines_.push_back(std::make_unique<Machine>(i, FileDescriptor()));
  return network;
}

Network::~Network() = default;

Status Network::build(int count, const std::vector<int>& delaying) {
  FileDescriptor hub = new_name_space();
  if (!hub) return unavailable("no network namespace can be made here");
  switch_ = std::make_unique<Machine>(-1, std::move(hub));
  faults_.resize(static_cast<std::size_t>(count));
  link_of_.resize(static_cast<std::size_t>(count));
  std::string plan = "link add hub type bridge\nlink set hub up\n";
  for (int i = 0; i < count; ++i) {
    FileDescriptor name_space = new_name_space();
    if (!name_space) return unavailable("no network namespace can be made here");
    const std::string path =
        "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(name_space.get());
    machines_.push_back(std::make_unique<Machine>(i, std::move(name_space)));
    const std::string port = "port" + std::to_string(i);
    if (std::find(delaying.begin(), delaying.end(), i) != delaying.end()) {
      auto link =
          DelayingLink::create(*switch_, port, *machines_.back(), "eth0", static_cast<unsigned>(i));
      if (!link.ok()) return link.status();
      link_of_[static_cast<std::size_t>(i)] = link->get();
      links_.push_back(std::move(*link));
    } else {
      plan += "link add " + port + " type veth peer name eth0 netns " + path + "\n";
    }
    plan += "link set " + port + " master hub\nlink set " + port + " up\n";
  }
  if (Status status = run_in(switch_->name_space(), {"ip", "-batch", "-"}, plan); !status.ok())
    return status;
  for (const auto& machine : machines_) {
    const std::string own = "link set lo up\nlink set eth0 up\naddr add " + machine->ipv4() +
                            "/24 dev eth0\naddr add " + machine->ipv6() + "/64 dev eth0 nodad\n";
    if (Status status = run_in(machine->name_space(), {"ip", "-batch", "-"}, own); !status.ok())
      return status;
  }
  return run_in(switch_->name_space(), {"nft", "list", "ruleset"});
}

void Network::apply(int machine) {
  const Faults& faults = faults_[static_cast<std::size_t>(machine)];
  std::string rules =
      "flush ruleset\ntable inet faults {\n chain in {\n  type filter hook input priority 0; "
      "policy accept\n";
  for (int from : faults.deaf_to) {
    rules += "  ip saddr " + machines_[static_cast<std::size_t>(from)]->ipv4() + " drop\n";
    rules += "  ip6 saddr " + machines_[static_cast<std::size_t>(from)]->ipv6() + " drop\n";
  }
  if (faults.loss > 0)
    rules += "  iifname eth0 numgen random mod 1000 < " +
             std::to_string(static_cast<int>(faults.loss * 1000)) + " drop\n";
  rules += " }\n}\n";
  const Status status =
      run_in(machines_[static_cast<std::size_t>(machine)]->name_space(), {"nft", "-f", "-"}, rules);
  if (!status.ok()) throw std::runtime_error(status.to_string());
}

void Network::cut(int from, int to) {
  faults_.at(static_cast<std::size_t>(to)).deaf_to.push_back(from);
  apply(to);
}

void Network::isolate(int machine) {
  for (int other = 0; other < size(); ++other) {
    if (other == machine) continue;
    cut(other, machine);
    cut(machine, other);
  }
}

void Network::lose(int machine, double share) {
  faults_.at(static_cast<std::size_t>(machine)).loss = share;
  apply(machine);
}

void Network::set_quality(int machine, const LinkQuality& quality) {
  DelayingLink* link = link_of_.at(static_cast<std::size_t>(machine));
  if (link == nullptr)
    throw std::logic_error("the link of machine " + std::to_string(machine) +
                           " is not a delaying one");
  link->set_quality(quality);
}

std::uint64_t Network::reordered(int machine) const {
  return link_of_.at(static_cast<std::size_t>(machine))->reordered();
}

void Network::heal() {
  for (int i = 0; i < size(); ++i) {
    Faults& faults = faults_[static_cast<std::size_t>(i)];
    const bool any = !faults.deaf_to.empty() || faults.loss > 0;
    faults = {};
    if (any) apply(i);
    if (link_of_[static_cast<std::size_t>(i)])
      link_of_[static_cast<std::size_t>(i)]->set_quality({});
  }
}

}  // namespace runtime::test
