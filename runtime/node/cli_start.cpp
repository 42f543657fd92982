#include "runtime/node/cli_start.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/core/asio.h"
#include "runtime/core/log.h"
#include "runtime/node/cluster_file.h"
#include "runtime/node/daemon.h"
#include "runtime/node/machine.h"
#include "runtime/node/node.h"
#include "runtime/node/session.h"
#include "runtime/object/object_store.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr auto kJoinTimeout = std::chrono::seconds(5);

Status add_resources(const StartOptions& options, ResourceMap& resources) {
  if (options.cpus) resources["CPU"] = *options.cpus;
  if (options.gpus) resources["GPU"] = *options.gpus;
  if (!options.resources.empty()) {
    auto json = nlohmann::json::parse(options.resources, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return invalid_argument("--resources is not a JSON object like '{\"x\": 1}': " + options.resources);
    for (const auto& [name, amount] : json.items()) {
      if ((name == "CPU" && options.cpus) || (name == "GPU" && options.gpus)) {
        return invalid_argument("--resources: '" + name + "' is given by " + (name == "CPU" ? "--num-cpus" : "--num-gpus") + " already");
      }
      if (!amount.is_number()) return invalid_argument("--resources: '" + name + "' is not a number");
      resources[name] = amount.get<double>();
    }
  }
  for (const auto& [name, amount] : resources) {
    if (!(amount >= 0) || std::isinf(amount)) return invalid_argument("resource '" + name + "' is not an amount from zero up");
  }
  std::erase_if(resources, [](const auto& entry) { return entry.second == 0; });
  return {};
}

Result<Labels> parse_labels(const std::vector<std::string>& lines) {
  Labels labels;
  for (const std::string& line : lines) {
    std::size_t equals = line.find('=');
    if (equals == std::string::npos || equals == 0) return invalid_argument("--label is not KEY=VALUE: " + line);
    if (!labels.emplace(line.substr(0, equals), line.substr(equals + 1)).second) {
      return invalid_argument("--label " + line.substr(0, equals) + " is given twice");
    }
  }
  return labels;
}

/// What other machines are to connect to must be a name or an address that can be connected to; empty is neither, and fine.
Status check_advertised(const std::string& host) {
  if (host.empty()) return {};
  boost::system::error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (!error && !address.is_unspecified()) return {};
  const bool is_name = error && std::all_of(host.begin(), host.end(), [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '-' || c == '_'; });
  if (is_name) return {};
  return invalid_argument("--advertise " + host + ": expected a host name or an address without a port, which other machines reach this node by");
}

/// Everything `start` decides before anything runs.
struct Plan {
  NodeOptions node;
  ClusterAddress head;  // of another machine's node; empty address: the head is beside this one
  std::optional<ClusterFile> earlier;  // the cluster that is gone on with
};

Result<Plan> make_plan(const StartOptions& options) {
  if (options.head == !options.address.empty()) {
    return invalid_argument("say either --head, to start a cluster, or --address HOST:PORT, to join one");
  }
  Plan plan;
  plan.node.node = NodeId::random();
  plan.node.resources = machine_resources();
  if (Status status = add_resources(options, plan.node.resources); !status.ok()) return status;
  auto labels = parse_labels(options.labels);
  if (!labels.ok()) return labels.status();
  plan.node.labels = std::move(*labels);
  plan.node.object_store_bytes = options.object_store_bytes;
  if (const std::uint64_t least = ObjectStoreOptions{}.slab_bytes; options.object_store_bytes != 0 && options.object_store_bytes < least) {
    return invalid_argument("--object-store-memory " + std::to_string(options.object_store_bytes) + ": expected at least " + std::to_string(least) + " bytes");
  }
  if (!(options.memory_threshold >= 0 && options.memory_threshold <= 1)) return invalid_argument("--memory-threshold is a share of the memory, from 0 (off) to 1");
  if (options.spill_limit == 0 && !options.spill_dir.empty()) return invalid_argument("--spill-limit 0 turns spilling off; --spill-dir is then for nothing");
  if (options.metrics != "key" && options.metrics != "open" && options.metrics != "off") {
    return invalid_argument("--metrics " + options.metrics + ": expected key (whoever shows `starling metrics --key`), open (anybody) or off");
  }
  plan.node.metrics_access = options.metrics == "key" ? MetricsAccess::kKey : options.metrics == "open" ? MetricsAccess::kOpen : MetricsAccess::kOff;
  std::string host = options.bind.empty() ? "127.0.0.1" : options.bind;
  if (!options.journal.empty() && !options.head) return invalid_argument("--journal goes with --head: only the head keeps one");
  plan.node.is_head = options.head;
  plan.node.program = fs::read_symlink("/proc/self/exe").string();
  if (options.head) {
    if (!options.journal.empty()) {
      plan.node.journal = fs::absolute(options.journal);
      auto earlier = read_cluster_file(plan.node.journal);
      if (!earlier.ok()) return earlier.status();
      plan.earlier = std::move(*earlier);
    }
    auto token = token_from_environment();
    if (!token.ok()) return token.status();
    plan.node.token = token->empty() ? ClusterId::random().hex() + ClusterId::random().hex() : *token;
    plan.node.cluster = ClusterId::random();
    if (plan.earlier) {
      if (!token->empty() && *token != plan.earlier->token) {
        return invalid_argument("--journal " + options.journal + " is of a cluster with another token than STARLING_TOKEN or STARLING_TOKEN_FILE says");
      }
      plan.node.token = plan.earlier->token;
      plan.node.cluster = plan.earlier->cluster;
      plan.node.replaces = plan.earlier->node;
    }
  } else {
    auto endpoint = Endpoint::parse(options.address);
    if (!endpoint.ok()) return endpoint.status();
    auto head = find_cluster(options.address);
    if (!head.ok()) return head.status();
    plan.head = std::move(*head);
    plan.head.address = options.address;  // the head itself, even if another node of its cluster is nearer
    plan.node.token = plan.head.token;
    plan.node.head = *endpoint;
    if (options.bind.empty()) {
      auto local = local_address_towards(endpoint->host);
      if (!local.ok()) return local.status();
      host = *local;
    }
  }
  plan.node.bind = Endpoint::tcp(host, static_cast<std::uint16_t>(options.port.value_or(options.head ? kDefaultPort : 0)));
  if (Status status = check_advertised(options.advertise); !status.ok()) return status;
  plan.node.advertise_host = options.advertise;
  if (plan.node.advertise_host.empty() && (host == "0.0.0.0" || host == "::")) plan.node.advertise_host = outward_address();
  return plan;
}

/// Which cluster the head that is to be joined is of: its folders are named by that.
Status learn_cluster(EventLoop& loop, Plan& plan) {
  Credentials credentials;
  credentials.token = plan.node.token;
  credentials.role = Role::kNode;
  credentials.node = plan.node.node;
  ConnectOptions connecting;
  connecting.deadline = deadline_after(kJoinTimeout);
  auto channel = connect(loop, plan.node.head, credentials, connecting);
  if (!channel.ok()) return channel.status().with_context("joining");
  plan.node.cluster = (*channel)->peer().cluster;
  (*channel)->close(cancelled("that was all"));
  return {};
}

bool is_address_of_this_machine(const asio::ip::address& address) {
  boost::system::error_code error;
  asio::io_context context;
  asio::ip::udp::socket socket(context);
  socket.open(address.is_v4() ? asio::ip::udp::v4() : asio::ip::udp::v6(), error);
  if (!error) socket.bind({address, 0}, error);
  return !error;
}

/// Adds to a failure to listen who has the port, or that the address is another machine's.
Status explain_listen(const Status& status, const Endpoint& bind) {
  boost::system::error_code is_name;
  const auto address = asio::ip::make_address(bind.host, is_name);
  if (!is_name && !is_address_of_this_machine(address)) {
    return Status(status.code(), "--bind " + bind.host + ": not an address of this machine; an address that is translated on its way here belongs in --advertise");
  }
  for (const SessionInfo& session : running_sessions()) {
    auto other = Endpoint::parse(session.address);
    if (bind.port == 0 || !other.ok() || other->port != bind.port) continue;
    return Status(status.code(), status.message() + " (a node of cluster " + session.cluster.short_hex() + ", pid " +
                                     std::to_string(session.pid) + ", listens at " + session.address +
                                     "; stop it with `starling stop --address " + session.address + "`, or choose another --port)");
  }
  return status;
}

std::string announcement(const StartOptions& options, const Plan& plan, const std::string& address) {
  std::string text = options.head ? "started a cluster, " : "joined the cluster at " + options.address + ", ";
  text += "node " + plan.node.node.short_hex() + ", pid " + std::to_string(::getpid()) + "\n";
  text += "logs: " + (plan.node.session_dir / "logs").string() + "\n";
  if (options.head && !options.is_private) {
    text += "another node: starling start --address " + address + "\n";
    if (!plan.node.bind.is_loopback()) {
      text += "  on another machine with STARLING_TOKEN_FILE naming a copy of " + (plan.node.session_dir.parent_path() / "token").string() + "\n";
    }
    text += "stop it all:  starling stop\n";
  }
  return text + address + "\n";
}

int run_node(const StartOptions& options, Plan plan, StartReport& report) {
  auto fail = [&](const Status& why) {
    report.failed(why);
    return 1;
  };
  start_log(options.head ? "head" : "node");
  EventLoop loop;
  // Before anything else, so that a Ctrl-C while starting is no abrupt end.
  asio::signal_set signals(loop.context(), SIGINT, SIGTERM);
  if (!options.head) {
    if (Status status = learn_cluster(loop, plan); !status.ok()) return fail(status);
  }
  auto session = create_session(plan.node.cluster, plan.node.node, plan.node.token);
  if (!session.ok()) return fail(session.status());
  plan.node.session_dir = *session;
  if (options.head && options.journal.empty() && !options.is_private) plan.node.journal = *session / "journal";
  const bool keeps_journal = options.head && !options.journal.empty();
  plan.node.durable = keeps_journal;
  ClusterFile file{plan.node.cluster, plan.node.token, plan.node.replaces};
  const fs::path journal = plan.node.journal;
  // Before anything runs: a folder that cannot be written to is better known now.
  if (Status status = keeps_journal ? write_cluster_file(journal, file) : Status(); !status.ok()) return fail(status);
  plan.node.memory.threshold = options.memory_threshold;
  if (options.spill_limit != 0) {
    // A folder per node, so that nodes can share a --spill-dir.
    const fs::path parent = options.spill_dir.empty() ? *session : fs::path(options.spill_dir);
    plan.node.spill.folder = (parent / ("spill-" + plan.node.node.hex())).string();
    plan.node.spill.limit_bytes = options.spill_limit.value_or(0);
  }
  if (report.background()) {
    if (Status status = redirect_output((*session / "logs" / "node.log").string()); !status.ok()) return fail(status);
  }
  auto clean_up = [&] {
    remove_session(*session);
    std::error_code ignored;
    fs::remove_all(*session, ignored);
    fs::remove(session->parent_path(), ignored);  // succeeds only when no other node is in it
  };
  Endpoint bind = plan.node.bind;
  SessionInfo info;
  info.cluster = plan.node.cluster;
  info.node = plan.node.node;
  auto node = Node::start(loop, std::move(plan.node));
  if (!node.ok()) {
    clean_up();
    return fail(explain_listen(node.status(), bind));
  }
  file.node = info.node;
  if (Status status = keeps_journal ? write_cluster_file(journal, file) : Status(); !status.ok()) LOG(warn, "{}", status.message());
  info.pid = ::getpid();
  info.pid_start = process_start_time(info.pid);
  info.address = (*node)->address();
  info.head_address = options.head ? info.address : plan.head.address;
  info.is_head = options.head;
  info.dir = *session;
  if (Status status = publish_session(info, !options.is_private); !status.ok()) {
    node->reset();
    clean_up();
    return fail(status);
  }
  signals.async_wait([&node](boost::system::error_code ec, int number) {
    if (!ec) (*node)->stop(cancelled(number == SIGINT ? "interrupted" : "terminated"));
  });
  plan.node.session_dir = *session;
  plan.node.node = info.node;
  LOG(info, "{} {} of cluster {} listens at {}", options.head ? "head" : "node", info.node.hex(), info.cluster.hex(), info.address);
  report.up(announcement(options, plan, info.address));
  Status end = (*node)->wait();
  node->reset();
  remove_session(*session);
  if (!keeps_journal && !journal.empty()) {
    std::error_code ignored;
    fs::remove_all(journal, ignored);
  }
  LOG(info, "stopped: {}", end.message());
  if (!report.background() && end.code() != ErrorCode::kCancelled) std::fprintf(stderr, "error: %s\n", end.message().c_str());
  return end.code() == ErrorCode::kCancelled ? 0 : 1;
}

}  // namespace

int start_command(const StartOptions& options, const MetricsProvider& metrics) {
  auto plan = make_plan(options);
  if (!plan.ok()) {
    std::fprintf(stderr, "error: %s\n", plan.status().message().c_str());
    return 1;
  }
  plan->node.metrics = metrics;
  ::signal(SIGPIPE, SIG_IGN);
  if (options.block || options.is_private) {
    if (options.is_private) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() == 1) return 1;  // its parent is gone already
    }
    StartReport report;
    return run_node(options, std::move(*plan), report);
  }
  auto shared = std::make_shared<Plan>(std::move(*plan));
  return run_in_background([&, shared](StartReport& report) { return run_node(options, std::move(*shared), report); });
}

}  // namespace runtime
