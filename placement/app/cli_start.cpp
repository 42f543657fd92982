#include "placement/app/cli_start.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "placement/app/start_plan.h"
#include "runtime/core/asio.h"
#include "runtime/core/descriptor_limit.h"
#include "runtime/core/log.h"
#include "runtime/core/printable_text.h"
#include "runtime/core/timer.h"
#include "runtime/process/daemon.h"
#include "runtime/process/machine.h"
#include "runtime/process/session_folder.h"
#include "runtime/process/spill_place.h"
#include "runtime/transport/blocking.h"

namespace placement {

namespace fs = std::filesystem;

namespace {

constexpr auto kJoinTimeout = std::chrono::seconds(5);
constexpr auto kRejoinPause = std::chrono::seconds(1);
// How often a node looks after its files on disk.
constexpr auto kRefreshPeriod = std::chrono::seconds(30);

/// Which cluster the head that is to be joined is of: its folders are named by that.
runtime::Status learn_cluster(runtime::EventLoop& loop, StartPlan& plan) {
  runtime::Credentials credentials;
  credentials.token = plan.node.token;
  credentials.role = runtime::Role::kNode;
  credentials.node = plan.node.node;
  runtime::ConnectOptions connecting;
  connecting.deadline = runtime::deadline_after(kJoinTimeout);
  auto channel = runtime::connect(loop, plan.node.head, credentials, connecting);
  if (!channel.ok()) return channel.status().with_context("joining");
  plan.node.cluster = (*channel)->peer().cluster;
  (*channel)->close(runtime::cancelled("that was all"));
  return {};
}

/// Adds to a failure to listen who has the port, or that the address is another machine's.
runtime::Status explain_listen(const runtime::Status& status, const runtime::Endpoint& bind) {
  boost::system::error_code is_name;
  const auto address = runtime::asio::ip::make_address(bind.host, is_name);
  if (!is_name && !runtime::is_address_of_this_machine(address)) {
    return runtime::Status(status.code(),
                           "--bind " + bind.host +
                               ": not an address of this machine; an address that is "
                               "translated on its way here belongs in --advertise");
  }
  for (const runtime::SessionInfo& session : runtime::running_sessions()) {
    auto other = runtime::Endpoint::parse(session.address);
    if (bind.port == 0 || !other.ok() || other->port != bind.port) continue;
    return runtime::Status(status.code(),
                           status.message() + " (a node of cluster " + session.cluster.short_hex() +
                               ", pid " + std::to_string(session.pid) + ", listens at " +
                               session.address + "; stop it with `starling stop --address " +
                               session.address + "`, or choose another --port)");
  }
  return status;
}

std::string announcement(const StartOptions& options, const StartPlan& plan,
                         const std::string& address) {
  std::string text =
      options.head ? "started a cluster, " : "joined the cluster at " + options.address + ", ";
  text += "node " + plan.node.node.short_hex() + ", pid " + std::to_string(::getpid()) + "\n";
  text += "logs: " + (plan.node.session_dir / "logs").string() + "\n";
  if (options.head && !options.is_private) {
    text += "another node: starling start --address " + address + "\n";
    if (!plan.node.bind.is_loopback()) {
      text += "  on another machine with STARLING_TOKEN_FILE naming a copy of " +
              (plan.node.session_dir.parent_path() / "token").string() + "\n";
    }
    text += "stop it all:  starling stop\n";
  }
  return text + address + "\n";
}

/// The process of a node. It is a member of its cluster under one node id. Each time the cluster
/// has declared it dead, it comes back under another one. What an older one ran has been replaced.
class NodeRun {
 public:
  NodeRun(const StartOptions& options, StartPlan plan, runtime::StartReport& report)
      : options_(options),
        plan_(std::move(plan)),
        report_(report),
        signals_(loop_.context(), SIGINT, SIGTERM),
        signalled_(loop_) {
    // Before anything else, so that a Ctrl-C while starting is no abrupt end.
    await_signals();
  }

  int run() {
    if (!options_.head) {
      if (runtime::Status status = learn_cluster(loop_, plan_); !status.ok()) return fail(status);
    }
    if (runtime::Status status = join(); !status.ok()) return fail(status);
    report_.up(announcement(options_, plan_, node_->address()));
    for (;;) {
      const runtime::Status end = node_->wait();
      const bool fenced = node_->is_fenced() && !node_->is_leaving() && !signalled_.is_set();
      leave();
      if (!fenced) return finish(end);
      LOG(warn, "{}", end.message());
      plan_.node.node = runtime::NodeId::random();
      if (runtime::Status status = rejoin(); !status.ok()) return finish(status);
    }
  }

 private:
  /// SIGTERM has the node drained, if it has time for that; the second one, or SIGINT, ends it at
  /// once.
  void await_signals() {
    signals_.async_wait([this](boost::system::error_code ec, int number) {
      if (ec) return;
      const std::chrono::milliseconds drain_time = std::exchange(plan_.drain_time, {});
      if (number == SIGTERM && drain_time.count() > 0 && node_) {
        node_->drain("SIGTERM", drain_time);
        return await_signals();
      }
      stop_reason_ = runtime::cancelled(number == SIGINT ? "interrupted" : "terminated");
      signalled_.set();
      if (node_) node_->stop(stop_reason_);
    });
  }

  runtime::Status join() {
    const runtime::Status status = try_to_join();
    if (!status.ok()) drop_session();
    return status;
  }

  void drop_session() {
    drop_spill();
    if (plan_.node.session_dir.empty()) return;
    runtime::remove_session(plan_.node.session_dir);
    std::error_code ignored;
    fs::remove_all(plan_.node.session_dir, ignored);
    // Succeeds only when no other node is in it.
    fs::remove(plan_.node.session_dir.parent_path(), ignored);
    unlock_session();
  }

  /// Makes the session's folder, starts the node and publishes its address.
  runtime::Status try_to_join() {
    // One that joins again stays in the root that it began with.
    const fs::path& former = plan_.node.session_dir;
    auto created = runtime::SessionFolder::create(
        plan_.node.cluster, plan_.node.node, plan_.node.token,
        former.empty() ? runtime::session_root() : former.parent_path().parent_path());
    if (!created.ok()) return created.status();
    const fs::path session = created->path();
    plan_.node.session_dir = session;
    runtime::on_loop(loop_, [&] {
      session_.emplace(*std::move(created));
      return true;
    });
    // One that joins again, which may take long, is found by `starling stop` meanwhile.
    if (!address_.empty()) {
      if (runtime::Status status = publish(false); !status.ok()) return status;
    }
    if (options_.head && options_.journal.empty() && !options_.is_private)
      plan_.node.journal = session / "journal";
    plan_.node.durable = keeps_journal();
    // Before anything runs: a folder that cannot be written to is better known now.
    if (runtime::Status status = note_cluster(plan_.node.replaces); !status.ok()) return status;
    plan_.node.memory.threshold = options_.memory_threshold;
    plan_.node.log_limit = options_.log_limit;
    plan_.node.job_size_limit = options_.job_size_limit;
    plan_.node.job_user = options_.job_user;
    plan_.node.users = options_.users;
    if (runtime::Status status = make_spill_place(session); !status.ok()) return status;
    if (report_.background()) {
      if (runtime::Status status =
              runtime::redirect_output((session / "logs" / "node.log").string());
          !status.ok())
        return status;
    }
    plan_.node.keep_token = [this](const std::string& token, bool is_present) {
      return keep_token(token, is_present);
    };
    auto node = runtime::Node::start(loop_, plan_.node);
    if (!node.ok()) return explain_listen(node.status(), plan_.node.bind);
    const runtime::Status told_to_stop = runtime::on_loop(loop_, [&] {
      node_ = std::move(*node);
      return stop_reason_;
    });
    address_ = node_->address();
    // On the loop, where a change of the token may come in already.
    const runtime::Status noted =
        runtime::on_loop(loop_, [this] { return note_cluster(plan_.node.node); });
    if (!noted.ok()) LOG(warn, "{}", noted.message());
    if (runtime::Status status = publish(is_what_commands_mean()); !status.ok()) {
      give_up();
      return status;
    }
    runtime::on_loop(loop_, [this] {
      refresh_session();
      return true;
    });
    LOG(info, "{} {} of cluster {} listens at {}", options_.head ? "head" : "node",
        plan_.node.node.hex(), plan_.node.cluster.hex(), node_->address());
    if (!told_to_stop.ok()) node_->stop(told_to_stop);
    return {};
  }

  runtime::Status make_spill_place(const fs::path& session) {
    if (options_.spill_limit == 0) return {};
    // A folder per node, so that nodes can share a --spill-dir.
    const fs::path parent = options_.spill_dir.empty() ? session : fs::path(options_.spill_dir);
    auto place = runtime::SpillPlace::create(parent, plan_.node.node);
    if (!place.ok()) return place.status();
    plan_.node.spill.folder = (*place)->path().string();
    runtime::on_loop(loop_, [&] {
      spill_ = *std::move(place);
      return true;
    });
    plan_.node.spill.limit_bytes = options_.spill_limit.value_or(0);
    return {};
  }

  /// Tries to join for as long as nodes wait for a head.
  runtime::Status rejoin() {
    const runtime::Deadline patience = runtime::deadline_after(plan_.node.link.patience);
    for (;;) {
      runtime::Status status = try_to_join();
      if (status.ok()) return status;
      const bool passing = status.code() == runtime::ErrorCode::kUnavailable ||
                           status.code() == runtime::ErrorCode::kDeadlineExceeded;
      const bool signalled = passing && runtime::steady_now() <= patience &&
                             loop_.run_until(signalled_, runtime::deadline_after(kRejoinPause));
      if (passing && runtime::steady_now() <= patience && !signalled) continue;
      drop_session();
      return signalled ? stop_reason_ : status;
    }
  }

  void leave() {
    if (auto endpoint = runtime::Endpoint::parse(node_->address()); endpoint.ok())
      plan_.node.bind.port = endpoint->port;  // where others know it
    give_up();
    drop_spill();
    runtime::remove_session(plan_.node.session_dir);
    unlock_session();
    if (!keeps_journal() && !plan_.node.journal.empty()) {
      std::error_code ignored;
      fs::remove_all(plan_.node.journal, ignored);
    }
  }

  void drop_spill() {
    runtime::on_loop(loop_, [this] {
      spill_.reset();
      return true;
    });
  }

  void give_up() {
    std::unique_ptr<runtime::Node> gone =
        runtime::on_loop(loop_, [this] { return std::move(node_); });
  }

  int finish(const runtime::Status& end) {
    LOG(info, "stopped: {}", end.message());
    if (end.code() == runtime::ErrorCode::kCancelled) return 0;
    if (!report_.background())
      std::fprintf(stderr, "error: %s\n", runtime::printable_text(end.message()).c_str());
    return 1;
  }

  int fail(const runtime::Status& why) {
    report_.failed(why);
    return 1;
  }

  /// Commands that name no cluster use what was started last. Of one cluster's nodes here they use
  /// the first, which stays longest: not one that comes and goes.
  bool is_what_commands_mean() const {
    if (options_.is_private || options_.head) return !options_.is_private;
    const std::vector<runtime::SessionInfo> sessions = runtime::running_sessions();
    return std::none_of(sessions.begin(), sessions.end(), [&](const runtime::SessionInfo& other) {
      return other.cluster == plan_.node.cluster && other.node != plan_.node.node;
    });
  }

  bool keeps_journal() const { return options_.head && !options_.journal.empty(); }

  runtime::Status note_cluster(runtime::NodeId local_node) const {
    return note_cluster(local_node, plan_.node.token, plan_.node.next_token);
  }
  runtime::Status note_cluster(runtime::NodeId local_node, const std::string& token,
                               const std::string& next_token) const {
    return keeps_journal()
               ? write_cluster_file(plan_.node.journal,
                                    ClusterFile{plan_.node.cluster, token, local_node, next_token})
               : runtime::Status();
  }

  /// On the loop.
  runtime::Status keep_token(const std::string& token, bool is_present) {
    const bool is_known = is_present ? plan_.node.token == token && plan_.node.next_token.empty()
                                     : plan_.node.next_token == token;
    if (is_known) return {};
    const std::string& present = is_present ? token : plan_.node.token;
    const std::string next = is_present ? "" : token;
    // Known only once it is on disk: what failed is tried again when it is told again.
    if (runtime::Status noted = note_cluster(plan_.node.node, present, next); !noted.ok())
      return noted;
    if (is_present && session_) {
      if (runtime::Status used = session_->use_token(token); !used.ok()) return used;
    }
    plan_.node.token = present;
    plan_.node.next_token = next;
    return {};
  }

  runtime::Status publish(bool as_last) {
    return runtime::on_loop(loop_, [&] { return session_->publish(session_info(), as_last); });
  }

  /// Now and then, so that a cleaner of temporary folders takes nothing away. On the loop.
  void refresh_session() {
    if (!session_) return;
    if (runtime::Status status = session_->refresh(); !status.ok())
      LOG(warn, "the node's files: {}", status.message());
    if (runtime::Status status = spill_ ? spill_->refresh() : runtime::Status(); !status.ok())
      LOG(warn, "{}", status.message());
    refresh_.expires_after(kRefreshPeriod);
    refresh_.async_wait([this](boost::system::error_code ec) {
      if (!ec) refresh_session();
    });
  }

  void unlock_session() {
    runtime::on_loop(loop_, [this] {
      refresh_.cancel();
      session_.reset();
      return true;
    });
  }

  runtime::SessionInfo session_info() const {
    runtime::SessionInfo info;
    info.cluster = plan_.node.cluster;
    info.node = plan_.node.node;
    info.pid = ::getpid();
    info.pid_start = runtime::process_start_time(info.pid);
    info.pid_scope = runtime::pid_scope();
    info.host = runtime::machine_hostname();
    info.address = address_;
    // The port is the node's; what it listens at may be every address of the machine.
    if (auto endpoint = runtime::Endpoint::parse(address_); endpoint.ok())
      info.bound = runtime::Endpoint::tcp(plan_.node.bind.host, endpoint->port).to_string();
    info.head_address = options_.head ? info.address : plan_.head.address;
    info.is_head = options_.head;
    info.stop_patience = std::chrono::ceil<std::chrono::seconds>(plan_.node.autoscaler_stop);
    return info;
  }

  const StartOptions& options_;
  StartPlan plan_;
  runtime::StartReport& report_;
  runtime::EventLoop loop_;
  runtime::asio::signal_set signals_;
  runtime::Event signalled_;
  runtime::Status
      stop_reason_;  // of a signal; with node_ written on the loop, where signals arrive
  std::unique_ptr<runtime::Node> node_;
  std::optional<runtime::SessionFolder> session_;  // on the loop
  std::unique_ptr<runtime::SpillPlace> spill_;     // while the node is there
  runtime::Timer refresh_{loop_.context()};
  std::string address_;  // of the node now, or last
};

int run_node(const StartOptions& options, StartPlan plan, runtime::StartReport& report) {
  runtime::raise_descriptor_limit();
  runtime::start_log(options.head ? "head" : "node");
  return NodeRun(options, std::move(plan), report).run();
}

}  // namespace

int start_command(const StartOptions& options, const runtime::MetricsProvider& metrics) {
  auto plan = make_plan(options);
  if (!plan.ok()) {
    std::fprintf(stderr, "error: %s\n", runtime::printable_text(plan.status().message()).c_str());
    return 1;
  }
  plan->node.metrics = metrics;
  if (plan->node.tls.any() && metrics.check_tls) {
    if (runtime::Status status = metrics.check_tls(plan->node.tls); !status.ok()) {
      std::fprintf(stderr, "error: --tls-cert, --tls-key: %s\n",
                   runtime::printable_text(status.message()).c_str());
      return 1;
    }
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(
      SIGXFSZ,
      SIG_IGN);  // a file-size limit that is too low is an error of the write, with the file's name
  if (options.block || options.is_private) {
    if (options.is_private) {
      // LocalCluster has asked for the signal already, when it made this process. A parent's number
      // says nothing: in a container the program that runs there is number 1.
      const pid_t parent = ::getppid();
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() != parent) return 1;
    }
    const auto run = [&] {
      runtime::StartReport report;
      return run_node(options, std::move(*plan), report);
    };
    return ::getpid() == 1 ? runtime::run_below_init(run) : run();
  }
  auto shared = std::make_shared<StartPlan>(std::move(*plan));
  return runtime::run_in_background([&, shared](runtime::StartReport& report) {
    return run_node(options, std::move(*shared), report);
  });
}

}  // namespace placement
