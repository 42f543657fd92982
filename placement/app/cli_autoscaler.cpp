#include "placement/app/cli_autoscaler.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "placement/app/cli_query.h"
#include "placement/autoscaler/autoscaler.h"
#include "placement/autoscaler/command_provider.h"
#include "placement/autoscaler/config_file.h"
#include "placement/autoscaler/local_provider.h"
#include "placement/autoscaler/status.h"
#include "runtime/control/key_value_client.h"
#include "runtime/core/asio.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/printable_text.h"
#include "runtime/process/file_util.h"

namespace placement {

namespace {

using runtime::Status;

constexpr auto kConnectTimeout = std::chrono::seconds(10);
constexpr std::int64_t kStaleMs = 20'000;  // the autoscaler reports every 5 s at least

std::unique_ptr<NodeProvider> make_provider(runtime::EventLoop& loop,
                                            const AutoscalerConfig& config, NodeStart start) {
  if (config.provider.kind == ProviderOptions::Kind::kCommand)
    return std::make_unique<CommandProvider>(loop, config.provider, std::move(start));
  return std::make_unique<LocalProvider>(loop, config.start_timeout, std::move(start));
}

void leave_word(const std::string& file, const std::string& text) {
  if (file.empty()) return;
  if (Status written = runtime::write_file_atomic(file, text, 0600); !written.ok())
    LOG(error, "{}", written.message());
}

/// Runs until it is told to end. Errors: why it cannot go on.
Status run(const AutoscalerCommandOptions& options, const AutoscalerConfig& config) {
  auto cluster = runtime::find_cluster(options.address);
  if (!cluster.ok()) return cluster.status();
  runtime::EventLoop loop;
  runtime::asio::signal_set signals(loop.context(), SIGTERM);
  runtime::Event over(loop);
  Status why;
  auto client = runtime::NodeClient::connect(loop, *cluster, runtime::Role::kTool,
                                             runtime::deadline_after(kConnectTimeout));
  if (!client.ok()) return client.status();
  const char* token_file = std::getenv("STARLING_TOKEN_FILE");
  std::error_code error;
  NodeStart start{std::filesystem::read_symlink("/proc/self/exe", error).string(), options.address,
                  (*client)->cluster_id().hex(), token_file ? token_file : ""};
  std::unique_ptr<Autoscaler> autoscaler;
  bool stopping = false;  // on the loop
  loop.post([&] {
    autoscaler =
        std::make_unique<Autoscaler>(loop, Autoscaler::Options{config, options.config}, **client,
                                     make_provider(loop, config, std::move(start)));
    autoscaler->start([&](const Status& failed) {
      why = failed;
      over.set();
    });
    leave_word(options.left,
               "the autoscaler has ended, and has not said whether all of its machines are "
               "removed");  // unless it comes to say more
    signals.async_wait([&](boost::system::error_code ec, int) {
      if (ec) return;
      stopping = true;
      autoscaler->stop([&] { over.set(); });
    });
  });
  (*client)->set_on_shutdown([&](const Status& reason) {
    loop.post([&, reason] {
      if (stopping) return;
      why = reason;
      over.set();
    });
  });
  loop.run_until(over, runtime::Deadline::max());
  runtime::Event gone(loop);
  loop.post([&] {
    if (stopping) leave_word(options.left, autoscaler->left());
    autoscaler.reset();
    gone.set();
  });
  loop.run_until(gone, runtime::Deadline::max());
  client->reset();
  loop.stop();
  return why;
}

}  // namespace

int autoscaler_run_command(const AutoscalerCommandOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);  // a Ctrl-C is the node's to hear
  runtime::start_log("autoscaler");
  auto config = read_autoscaler_config(options.config);
  const Status end = config.ok() ? run(options, *config) : config.status();
  if (end.ok()) return 0;
  LOG(error, "{}", end.message());
  return 1;
}

int autoscaler_status_command(const std::string& address, bool json) {
  auto text = ask_cluster<std::string>(
      address, [](runtime::NodeClient& client, runtime::Deadline deadline, auto done) {
        runtime::KeyValueClient(client).get(kStatusKey, false, deadline, done);
      });
  if (!text.ok() && text.status().code() == runtime::ErrorCode::kNotFound &&
      text.status().message().find(kStatusKey) != std::string::npos) {
    return fail(
        runtime::not_found("no autoscaler runs in this cluster; `starling start --head "
                           "--autoscaler FILE` starts one with it"));
  }
  if (!text.ok()) return fail(text.status());
  const auto status = nlohmann::ordered_json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!status.is_object())
    return fail(runtime::internal_error("the autoscaler's status is malformed"));
  if (json) {
    print_json(status);
    return 0;
  }
  const auto now = static_cast<std::int64_t>(runtime::unix_milliseconds());
  std::int64_t age = 0;
  try {  // any writer of the store may have written it
    std::printf("%s", runtime::printable_text(status_text(status, now)).c_str());
    age = now - status.value("reported_at_ms", now);
  } catch (const nlohmann::json::exception&) {
    return fail(runtime::internal_error("the autoscaler's status is malformed"));
  }
  if (age > kStaleMs)
    std::printf(
        "this is %lld s old: the autoscaler does not run, or does not reach the head; see "
        "autoscaler.log next to the head's log\n",
        static_cast<long long>(age / 1000));
  return 0;
}

int autoscaler_check_command(const std::string& file) {
  auto config = read_autoscaler_config(file);
  if (!config.ok()) return fail(config.status());
  if (Status status = check_command(config->provider); !status.ok())
    return fail(status.with_context(file));
  std::printf("%s: %zu to %zu nodes, of %zu type%s\n", file.c_str(), config->min_nodes,
              config->max_nodes, config->types.size(), config->types.size() == 1 ? "" : "s");
  return 0;
}

}  // namespace placement
