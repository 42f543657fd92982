#include "runtime/node/cli_metrics.h"

#include "runtime/node/cli_nodes.h"
#include "runtime/node/metrics_source.h"

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
  std::fwrite(text->data(), 1, text->size(), stdout);
  return 0;
}

}  // namespace runtime
