#include "schedule.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "tests/support/pauses.h"

namespace runtime::test {

using Clock = std::chrono::steady_clock;

namespace {

/// Connections that are under way, or made and silent.
std::vector<FileDescriptor> knock(const std::string& host, int port, int count) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  std::vector<FileDescriptor> sockets;
  for (int i = 0; i < count; ++i) {
    sockets.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    (void)::connect(sockets.back().get(), reinterpret_cast<const sockaddr*>(&address),
                    sizeof address);
  }
  return sockets;
}

}  // namespace

Schedule::Schedule(Cluster& cluster, Network& network, std::string history, ScheduleOptions options)
    : cluster_(cluster),
      network_(network),
      history_(std::move(history)),
      file_(history_),
      options_(std::move(options)),
      random_(options_.seed),
      node_again_(static_cast<std::size_t>(network.size())) {
  for (int machine : options_.clients_on) clients_.push_back({machine, nullptr, {}});
}

void Schedule::note(const std::string& what) {
  char line[512];
  std::snprintf(line, sizeof line, "%8.2f s (%lld ms)  %s\n",
                std::chrono::duration<double>(Clock::now() - begun_).count(),
                static_cast<long long>(now_us() / 1000), what.c_str());
  trace_ += line;
  if (what.find("the head") == std::string::npos && what.find("clock") == std::string::npos &&
      what.find("disk") == std::string::npos)
    file_.unsettled(now_us());
}

std::chrono::milliseconds Schedule::between(std::chrono::milliseconds shortest,
                                            std::chrono::milliseconds longest) {
  return std::chrono::milliseconds(
      std::uniform_int_distribution<std::int64_t>(shortest.count(), longest.count())(random_));
}

void Schedule::last(std::chrono::milliseconds shortest, std::chrono::milliseconds longest,
                    const std::string& name, std::function<void()> end) {
  const auto time = between(shortest, longest);
  note(name + " for " + std::to_string(time.count()) + " ms");
  lasting_.push_back({Clock::now() + time, name, std::move(end)});
}

void Schedule::kill(pid_t pid, const std::string& what) {
  if (pid <= 0) return;
  note("kill " + what + " (pid " + std::to_string(pid) + ")");
  ::kill(pid, SIGKILL);
}

void Schedule::stop(pid_t pid, std::chrono::milliseconds longest, const std::string& what) {
  if (pid <= 0) return;
  ::kill(pid, SIGSTOP);
  last(200ms, longest, "stop " + what + " (pid " + std::to_string(pid) + ")",
       [pid] { ::kill(pid, SIGCONT); });
}

pid_t Schedule::any_worker() {
  const auto workers = cluster_.workers(any(network_.size()));
  return workers.empty() ? 0
                         : workers[static_cast<std::size_t>(any(static_cast<int>(workers.size())))];
}

void Schedule::inject() {
  ++faults_;
  const int machines = network_.size(), machine = any(machines),
            other = (machine + 1 + any(machines - 1)) % machines;
  const std::string name = "machine " + std::to_string(machine);
  // Rules of the network are undone together, so one at a time.
  const auto disturb = [&](std::chrono::milliseconds shortest, std::chrono::milliseconds longest,
                           const std::string& what, const std::function<void()>& begin) {
    if (std::exchange(network_is_faulty_, true)) return;
    begin();
    last(shortest, longest, what, [this] {
      network_.heal();
      network_is_faulty_ = false;
    });
  };
  switch (any(15)) {
    case 0:
    case 1: return kill(cluster_.head(), "the head");
    case 2: return stop(cluster_.head(), 6s, "the head");
    case 3: return kill(cluster_.node(machine), "the node of " + name);
    case 4: return stop(cluster_.node(machine), 14s, "the node of " + name);
    case 5: return kill(any_worker(), "a worker");
    case 6: return stop(any_worker(), 5s, "a worker");
    case 7: {
      Client& client = clients_[static_cast<std::size_t>(any(static_cast<int>(clients_.size())))];
      if (!client.program || !client.program->runs()) return;
      return any(2) == 0 ? kill(client.program->pid(), "a client")
                         : stop(client.program->pid(), 5s, "a client");
    }
    case 8: return disturb(2s, 6s, name + " loses 5 %", [&] { network_.lose(machine, 0.05); });
    case 9:
      return disturb(1s, 12s, name + " is not heard by machine " + std::to_string(other),
                     [&] { network_.cut(machine, other); });
    case 10: return disturb(1s, 14s, name + " is cut off", [&] { network_.isolate(machine); });
    case 11: {
      if (options_.delaying.empty()) return;
      const int slow =
          options_
              .delaying[static_cast<std::size_t>(any(static_cast<int>(options_.delaying.size())))];
      const LinkQuality quality{
          .delay = between(1ms, 80ms), .jitter = between(1ms, 40ms), .loss = any(2) * 0.02};
      return disturb(
          2s, 8s, "packets of machine " + std::to_string(slow) + " come late and in another order",
          [&] { network_.set_quality(slow, quality); });
    }
    case 12: {
      const std::filesystem::path filler = options_.journal_disk / "filler";
      if (options_.journal_disk.empty() || std::filesystem::exists(filler)) return;
      fill_disk(options_.journal_disk);
      return last(500ms, 4s, "the journal's disk is full",
                  [filler] { std::filesystem::remove(filler); });
    }
    case 13: {
      auto held = std::make_shared<std::vector<FileDescriptor>>();
      network_.machine(other).inside(
          [&] { *held = knock(network_.machine(machine).ipv4(), cluster_.port(), 500); });
      return last(
          500ms, 4s,
          "strangers on machine " + std::to_string(other) + " open 500 connections to " + name,
          [held] { held->clear(); });
    }
    default: {
      if (!options_.set_wall_clock) return;
      const std::int64_t seconds =
          std::uniform_int_distribution<std::int64_t>(-86400 * 400, 86400 * 400)(random_);
      note("the wall clock jumps to " + std::to_string(seconds) + " s from where it belongs");
      return options_.set_wall_clock(seconds);
    }
  }
}

void Schedule::look_after() {
  const auto now = Clock::now();
  for (auto at = lasting_.begin(); at != lasting_.end();) {
    if (at->until > now) {
      ++at;
      continue;
    }
    note("no more: " + at->name);
    const auto end = std::move(at->end);
    at = lasting_.erase(at);
    end();
  }
  for (int machine = 0; machine < network_.size(); ++machine) {
    auto& again = node_again_[static_cast<std::size_t>(machine)];
    if (cluster_.runs(machine)) {
      again = {};
    } else if (again == Clock::time_point{}) {
      note("the node of machine " + std::to_string(machine) + " has ended");
      again = now + between(200ms, 1500ms);
    } else if (now >= again) {
      const Status status = cluster_.start_node(machine);
      note("the node of machine " + std::to_string(machine) +
           (status.ok() ? " is started again" : " cannot be started: " + status.message()));
      again = status.ok() ? Clock::time_point{} : Clock::now() + 1s;
    }
  }
  for (Client& client : clients_) {
    if (client.program && client.program->runs()) continue;
    if (client.program) {
      note("a client on machine " + std::to_string(client.machine) + " has ended with code " +
           std::to_string(*client.program->wait(0ms)));
      client.program = nullptr;
      client.again = now + 300ms;
    }
    if (now < client.again || !cluster_.runs(client.machine)) continue;
    LoadOptions load = options_.load;
    load.client = ++last_client_;
    load.history = history_;
    client.program = cluster_.launch(client.machine, load_command(load));
  }
}

Status Schedule::run() {
  look_after();
  support::hold_for(1s);  // of load before the first fault
  auto next = Clock::now();
  while (Clock::now() < begun_ + options_.duration) {
    look_after();
    if (Clock::now() >= next) {
      inject();
      next = Clock::now() + between(100ms, 4s);
    }
    support::pace(20ms);
  }
  for (Lasting& lasting : lasting_) lasting.until = {};
  look_after();
  network_.heal();
  if (options_.set_wall_clock) options_.set_wall_clock(0);
  note("no more faults");
  const bool whole = eventually(
      [this] {
        look_after();
        return cluster_.members(1) == network_.size();
      },
      60s, 200ms);
  if (!whole)
    return unavailable("a minute after the last fault there are " +
                       std::to_string(cluster_.members(1)) + " members instead of " +
                       std::to_string(network_.size()));
  note("every node is a member");
  support::hold_for(2s);  // with a load and without faults
  for (Client& client : clients_) {
    if (client.program) client.program->signal(SIGTERM);
  }
  for (Client& client : clients_) {
    if (client.program && !client.program->wait(60s))
      return deadline_exceeded("a client does not end: " + client.program->output());
  }
  return {};
}

}  // namespace runtime::test
