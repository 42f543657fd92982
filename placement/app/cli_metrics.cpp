#include "placement/app/cli_metrics.h"

#include "placement/app/cli_nodes.h"
#include "runtime/core/printable_text.h"
#include "runtime/observe/metrics_source.h"

namespace runtime {

int metrics_command(const std::string& address, bool key) {
  auto cluster = find_cluster(address);
  if (!cluster.ok()) return fail(cluster.status());
  if (key) return std::printf("%s\n", metrics_key(cluster->token).c_str()), 0;
  EventLoop loop;
  auto client =
      NodeClient::connect(loop, *cluster, Role::kTool, deadline_after(std::chrono::seconds(10)));
  if (!client.ok()) return fail(client.status());
  auto text = observe<std::string>(loop, **client, control::ReadMetrics{});
  if (!text.ok()) return fail(text.status());
  const std::string shown = terminal_text(STDOUT_FILENO, *text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  return 0;
}

}  // namespace runtime
