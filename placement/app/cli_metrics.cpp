#include "placement/app/cli_metrics.h"

#include "placement/app/cli_nodes.h"
#include "runtime/core/printable_text.h"
#include "runtime/observe/metrics_key.h"

namespace placement {

int metrics_command(const std::string& address, bool key) {
  auto cluster = runtime::find_cluster(address);
  if (!cluster.ok()) return fail(cluster.status());
  if (key) return std::printf("%s\n", runtime::metrics_key(cluster->token).c_str()), 0;
  runtime::EventLoop loop;
  auto client = runtime::NodeClient::connect(loop, *cluster, runtime::Role::kTool,
                                             runtime::deadline_after(std::chrono::seconds(10)));
  if (!client.ok()) return fail(client.status());
  auto text = observe<std::string>(loop, **client, runtime::control::ReadMetrics{});
  if (!text.ok()) return fail(text.status());
  const std::string shown = runtime::terminal_text(STDOUT_FILENO, *text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  return 0;
}

}  // namespace placement
