#include "cluster.h"

#include <unistd.h>

#include <utility>

#include "runtime/process/session.h"
#include "runtime/process/session_folder.h"

namespace sim {

Cluster::Cluster(World& world, std::filesystem::path folder)
    : world_(world), folder_(std::move(folder)), cluster_(runtime::ClusterId::random()) {}

const char* Cluster::token() { return "a token of the simulation"; }

void Cluster::add_machine(double cpus) {
  Machine machine;
  machine.address = "10.0.0." + std::to_string(machines_.size() + 1) + ":7000";
  machine.cpus = cpus;
  machines_.push_back(std::move(machine));
  restart(machines_.size() - 1);
}

std::map<std::string, std::string> Cluster::driver_variables() const {
  return {{"STARLING_SESSION_ROOT", folder_.string()}};
}

void Cluster::restart(std::size_t machine) {
  std::map<std::string, std::string> variables{{"STARLING_SESSION_ROOT", folder_.string()}};
  machines_[machine].node = world_.start("node " + std::to_string(machine), variables,
                                         [this, machine] { run_node(machine); });
}

void Cluster::run_node(std::size_t machine) {
  runtime::EventLoop loop;
  while (live(loop, machine)) {
  }
}

bool Cluster::live(runtime::EventLoop& loop, std::size_t index) {
  std::shared_ptr<Process> process = machines_[index].node;
  runtime::NodeOptions options;
  options.cluster = cluster_;
  options.node = runtime::NodeId::random();
  options.token = token();
  options.bind = *runtime::Endpoint::parse(machines_[index].address);
  options.resources = {{"CPU", machines_[index].cpus}};
  options.object_store_bytes = store_bytes_;
  options.memory.threshold = 0;  // it would look at the real machine's
  auto session = runtime::SessionFolder::create(cluster_, options.node, options.token);
  if (!session.ok()) {
    world_.fail("session: " + session.status().to_string());
    return false;
  }
  options.session_dir = session->path();
  if (disk_bytes_ > 0) {
    options.spill.folder = (session->path() / "spill").string();
    options.spill.limit_bytes = disk_bytes_;
  }
  options.is_head = index == 0;
  options.program = "starling";
  options.journal = folder_ / "journal";
  if (index != 0) options.head = *runtime::Endpoint::parse(machines_[0].address);
  runtime::SessionInfo info;
  info.cluster = cluster_;
  info.node = options.node;
  info.pid = ::getpid();
  info.pid_start = runtime::process_start_time(info.pid);
  info.address = machines_[index].address;
  info.head_address = machines_[0].address;
  info.is_head = index == 0;
  auto node = runtime::Node::start(loop, std::move(options));
  if (!node.ok()) {
    world_.note("node " + std::to_string(index) + ": " +
                std::to_string(static_cast<int>(node.status().code())));
    return false;
  }
  if (process->crashed) return false;
  process->on_crash = [raw = node->get()] { raw->quit(runtime::cancelled("crashed")); };
  auto published = session->publish(info, false);
  if (!published.ok()) world_.fail("session: " + published.to_string());
  machines_[index].up = true;
  machines_[index].running = node->get();
  (void)(*node)->wait();
  machines_[index].up = false;
  machines_[index].running = nullptr;
  process->on_crash = nullptr;
  runtime::remove_session(session->path());
  return (*node)->is_fenced() && !process->crashed;
}

}  // namespace sim
