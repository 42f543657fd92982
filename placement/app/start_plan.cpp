#include "placement/app/start_plan.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "runtime/control/cluster_view.h"
#include "runtime/control/label_value.h"
#include "runtime/control/resource_units.h"
#include "runtime/control/token_strength.h"
#include "runtime/core/asio.h"
#include "runtime/core/duration.h"
#include "runtime/process/job_user.h"
#include "runtime/process/machine.h"
#include "runtime/store/object_store.h"
#include "runtime/transport/token_key.h"

namespace placement {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kLogLimitMin = 1 << 20;

/// What other machines are to connect to must be a name or an address that can be connected to;
/// empty is neither, and fine.
runtime::Status check_advertised(const std::string& host) {
  if (host.empty()) return {};
  boost::system::error_code error;
  const auto address = runtime::asio::ip::make_address(host, error);
  if (!error && !address.is_unspecified()) return {};
  const bool is_name = error && std::all_of(host.begin(), host.end(), [](unsigned char c) {
                         return std::isalnum(c) || c == '.' || c == '-' || c == '_';
                       });
  if (is_name) return {};
  return runtime::invalid_argument(
      "--advertise " + host +
      ": expected a host name or an address without a port, which other "
      "machines reach this node by");
}

/// What other machines can reach needs a token that can't be guessed.
runtime::Status check_token(const std::string& token, const runtime::Endpoint& bind,
                            const std::string& journal) {
  if (token.empty())
    return runtime::invalid_argument(
        "the cluster's processes need a token to authenticate each other; set STARLING_TOKEN "
        "or STARLING_TOKEN_FILE");
  if (!runtime::key_of_caller(token).id.is_none())
    return runtime::invalid_argument(
        "STARLING_TOKEN or STARLING_TOKEN_FILE has a submitter's token, which cannot start a "
        "node: it is for `starling submit`");
  const double bits = runtime::estimated_bits(token);
  if (bind.is_loopback() || bits >= runtime::kTokenBitsMin) return {};
  const bool is_of_journal = !journal.empty();
  return runtime::invalid_argument(
      "--bind " + bind.host + ": other machines reach that address, and the token " +
      (is_of_journal ? "of the cluster in --journal " + journal
                     : "in STARLING_TOKEN or STARLING_TOKEN_FILE") +
      " is easy to guess (about " + std::to_string(std::lround(bits)) + " bits; " +
      std::to_string(std::lround(runtime::kTokenBitsMin)) + " are needed): " +
      (is_of_journal ? "start it without --bind, change the token (starling token --new), and "
                       "start it again"
                     : "leave both unset to have one made, or take what `openssl rand -hex 32` "
                       "prints"));
}

/// Addresses at which the node is reached besides its own, each HOST or HOST:PORT.
runtime::Result<std::vector<runtime::Endpoint>> parse_aliases(
    const std::vector<std::string>& texts) {
  std::vector<runtime::Endpoint> aliases;
  for (const std::string& text : texts) {
    if (check_advertised(text).ok() && !text.empty()) {
      aliases.push_back(runtime::Endpoint::tcp(text, 0));
      continue;
    }
    auto endpoint = runtime::Endpoint::parse(text);
    if (!endpoint.ok() || endpoint->is_unix() || !endpoint->target.is_none())
      return runtime::invalid_argument("--alias " + text + ": expected HOST or HOST:PORT");
    aliases.push_back(std::move(*endpoint));
  }
  return aliases;
}

runtime::Result<runtime::MetricsAccess> metrics_access(const std::string& text) {
  if (text == "key") return runtime::MetricsAccess::kKey;
  if (text == "open") return runtime::MetricsAccess::kOpen;
  if (text == "off") return runtime::MetricsAccess::kOff;
  return runtime::invalid_argument(
      "--metrics " + text +
      ": expected key (holders of the key of `starling metrics --key`), open (any client) or off");
}

runtime::Result<runtime::PreemptionOptions> preemption_options(const StartOptions& options) {
  runtime::PreemptionOptions preemption{options.preemption_file, options.preemption_command,
                                        options.preemption_url};
  if (!preemption.any()) return preemption;
  if (options.head) {
    return runtime::invalid_argument(
        "--preemption-file, --preemption-command and --preemption-url are for nodes that join a "
        "cluster: without the head's node the cluster ends. Run the head on a machine that is not "
        "preempted");
  }
  auto poll = runtime::parse_duration(options.preemption_poll);
  if (!poll.ok()) return poll.status().with_context("--preemption-poll");
  if (*poll < std::chrono::milliseconds(100))
    return runtime::invalid_argument("--preemption-poll " + options.preemption_poll +
                                     ": expected at least 100ms");
  preemption.poll = *poll;
  if (!preemption.url.empty()) {
    if (auto url = runtime::PreemptionUrl::parse(preemption.url); !url.ok())
      return url.status().with_context("--preemption-url");
  }
  return preemption;
}

/// What the node offers.
runtime::Status plan_offer(const StartOptions& options, runtime::NodeOptions& node) {
  // Who names the GPUs is not asked for a driver.
  node.resources =
      runtime::machine_resources(!options.amounts.gpus && !names(options.amounts, "GPU"));
  if (runtime::Status status = add_resources(options.amounts, node.resources); !status.ok())
    return status;
  if (const double gpus = node.resources["GPU"]; gpus != std::floor(gpus))
    return runtime::invalid_argument("a node has whole GPUs, not " +
                                     runtime::resource_text(runtime::resource_units(gpus)));
  std::erase_if(node.resources, [](const auto& entry) { return entry.second == 0; });
  auto labels = parse_labels("--label", options.labels);
  if (!labels.ok()) return labels.status();
  for (const auto& [key, value] : *labels) {
    if (runtime::Status status = runtime::check_label_value(value); !status.ok())
      return status.with_context("--label " + key + "=" + value);
  }
  node.labels = std::move(*labels);
  if (options.is_private) node.labels[runtime::kPrivateLabel] = "true";
  node.object_store_bytes = options.object_store_bytes;
  if (const std::uint64_t least = runtime::ObjectStoreOptions{}.slab_bytes;
      options.object_store_bytes != 0 && options.object_store_bytes < least) {
    return runtime::invalid_argument("--object-store-memory " +
                                     std::to_string(options.object_store_bytes) +
                                     ": expected at least " + std::to_string(least) + " bytes");
  }
  return {};
}

runtime::Status check_limits(const StartOptions& options) {
  if (!(options.memory_threshold >= 0 && options.memory_threshold <= 1))
    return runtime::invalid_argument(
        "--memory-threshold is a share of the memory, from 0 (off) to 1");
  if (options.log_limit != 0 && options.log_limit < kLogLimitMin) {
    return runtime::invalid_argument("--log-limit " + std::to_string(options.log_limit) +
                                     ": expected at least " + std::to_string(kLogLimitMin) +
                                     " bytes");
  }
  if (options.spill_limit == 0 && !options.spill_dir.empty())
    return runtime::invalid_argument(
        "--spill-limit 0 turns spilling off; --spill-dir is then for nothing");
  return {};
}

/// What the node tells, and is notified of.
runtime::Status plan_watches(const StartOptions& options, StartPlan& plan) {
  auto access = metrics_access(options.metrics);
  if (!access.ok()) return access.status();
  plan.node.metrics_access = *access;
  if (options.tls_cert.empty() != options.tls_key.empty())
    return runtime::invalid_argument("--tls-cert and --tls-key go together");
  if (!options.tls_cert.empty())
    plan.node.tls = {fs::absolute(options.tls_cert), fs::absolute(options.tls_key)};
  auto drain_time = runtime::parse_duration(options.drain_deadline);
  if (!drain_time.ok()) return drain_time.status().with_context("--drain-deadline");
  auto preemption = preemption_options(options);
  if (!preemption.ok()) return preemption.status();
  plan.node.preemption = std::move(*preemption);
  if (drain_time->count() > 0) plan.node.drain_time = *drain_time;
  // Without the head's node there is no cluster to go on elsewhere, and a private one ends with its
  // program.
  if (!options.head && !options.is_private) plan.drain_time = *drain_time;
  if (!options.job_user.empty()) {
    if (auto user = runtime::find_user(options.job_user); !user.ok())
      return user.status().with_context("--job-user");
  }
  return {};
}

runtime::Status plan_head(const StartOptions& options, StartPlan& plan) {
  if (!options.journal.empty()) {
    plan.node.journal = fs::absolute(options.journal);
    auto earlier = read_cluster_file(plan.node.journal);
    if (!earlier.ok()) return earlier.status();
    if (runtime::Status status = check_journal_folder(plan.node.journal, *earlier); !status.ok())
      return status;
    plan.earlier = std::move(*earlier);
  }
  auto token = runtime::token_from_environment();
  if (!token.ok()) return token.status();
  plan.node.token = token->empty()
                        ? runtime::ClusterId::random().hex() + runtime::ClusterId::random().hex()
                        : *token;
  plan.node.cluster = runtime::ClusterId::random();
  if (plan.earlier) {
    if (!token->empty() && *token != plan.earlier->token && *token != plan.earlier->next_token) {
      return runtime::invalid_argument(
          "--journal " + options.journal +
          " is of a cluster with another token than STARLING_TOKEN or STARLING_TOKEN_FILE says; "
          "if that was changed (starling token --new), unset the variable");
    }
    plan.node.token = plan.earlier->token;
    plan.node.next_token = plan.earlier->next_token;
    plan.node.cluster = plan.earlier->cluster;
    plan.node.replaces = plan.earlier->node;
  }
  return {};
}

/// `host`: where it listens; changed unless --bind says it.
runtime::Status plan_member(const StartOptions& options, StartPlan& plan, std::string& host) {
  auto endpoint = runtime::Endpoint::parse(options.address);
  if (!endpoint.ok()) return endpoint.status();
  auto head = runtime::find_cluster(options.address);
  if (!head.ok()) return head.status();
  plan.head = std::move(*head);
  plan.head.address =
      options.address;  // the head itself, even if another node of its cluster is nearer
  plan.node.token = plan.head.token;
  plan.node.head = *endpoint;
  if (options.bind.empty()) {
    auto local = runtime::local_address_towards(endpoint->host);
    if (!local.ok()) return local.status();
    host = *local;
  }
  return {};
}

runtime::Status plan_addresses(const StartOptions& options, StartPlan& plan,
                               const std::string& host) {
  if (runtime::Status status = check_token(plan.node.token, runtime::Endpoint::tcp(host, 0),
                                           plan.earlier ? options.journal : "");
      !status.ok())
    return status;
  plan.node.bind = runtime::Endpoint::tcp(
      host, static_cast<std::uint16_t>(options.port.value_or(options.head ? kDefaultPort : 0)));
  if (runtime::Status status = check_advertised(options.advertise); !status.ok()) return status;
  plan.node.advertise_host = options.advertise;
  auto aliases = parse_aliases(options.aliases);
  if (!aliases.ok()) return aliases.status();
  plan.node.aliases = std::move(*aliases);
  plan.node.plain = options.plain;
  if (plan.node.advertise_host.empty() && (host == "0.0.0.0" || host == "::"))
    plan.node.advertise_host = runtime::outward_address();
  return {};
}

}  // namespace

runtime::Result<StartPlan> make_plan(const StartOptions& options) {
  if (options.head == !options.address.empty()) {
    return runtime::invalid_argument(
        "say either --head, to start a cluster, or --address HOST:PORT, to join one");
  }
  StartPlan plan;
  plan.node.node = runtime::NodeId::random();
  if (runtime::Status status = plan_offer(options, plan.node); !status.ok()) return status;
  if (runtime::Status status = check_limits(options); !status.ok()) return status;
  if (runtime::Status status = plan_watches(options, plan); !status.ok()) return status;
  std::string host = options.bind.empty() ? "127.0.0.1" : options.bind;
  if (!options.journal.empty() && !options.head)
    return runtime::invalid_argument("--journal goes with --head: only the head keeps one");
  if (!options.autoscaler.empty()) {
    if (!options.head)
      return runtime::invalid_argument(
          "--autoscaler requires --head: it runs on the machine of the head");
    plan.node.autoscaler = {"autoscaler", "run", "--config",
                            fs::absolute(options.autoscaler).string()};
    plan.node.autoscaler_stop = options.autoscaler_stop;
  }
  plan.node.is_head = options.head;
  plan.node.program = fs::read_symlink("/proc/self/exe").string();
  const runtime::Status found =
      options.head ? plan_head(options, plan) : plan_member(options, plan, host);
  if (!found.ok()) return found;
  if (runtime::Status status = plan_addresses(options, plan, host); !status.ok()) return status;
  return plan;
}

}  // namespace placement
