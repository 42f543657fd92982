#include "placement/app/cli_token.h"

#include <chrono>
#include <cstdio>

#include "placement/app/cli_nodes.h"
#include "placement/app/cli_query.h"
#include "runtime/control/cluster_client.h"
#include "runtime/core/duration.h"
#include "runtime/process/session.h"
#include "runtime/transport/token_key.h"

namespace placement {

namespace {

constexpr std::chrono::minutes kGraceDefault{10};

runtime::Result<std::string> next_token(const std::string& file) {
  return file.empty() ? runtime::ClusterId::random().hex() + runtime::ClusterId::random().hex()
                      : runtime::read_token_file(file);
}

/// To whom the change has to be told by hand.
void tell_next_steps(std::chrono::milliseconds grace) {
  std::fprintf(
      stderr,
      "the cluster has another token; the one before counts for %s still.\n"
      "Nodes, workers, drivers and this user's jobs know it. Until then, replace it in\n"
      "  - STARLING_TOKEN_FILE (or STARLING_TOKEN), here and on other machines, for nodes that "
      "start there and for commands\n"
      "  - submitters' tokens (starling token --submitter) and the key of scrapers "
      "(starling metrics --key)\n",
      runtime::describe_duration(grace).c_str());
}

runtime::Status change_token(const TokenCommandOptions& options) {
  auto grace = options.grace.empty() ? runtime::Result<std::chrono::milliseconds>(kGraceDefault)
                                     : runtime::parse_duration(options.grace);
  if (!grace.ok()) return grace.status().with_context("--grace");
  auto token = next_token(options.file);
  if (!token.ok()) return token.status();
  auto changed = ask_cluster<std::monostate>(
      options.address, [&](runtime::NodeClient& client, runtime::Deadline deadline, auto done) {
        runtime::ClusterClient(client).change_token(
            *token, *grace, deadline, [done = std::move(done)](runtime::Status status) mutable {
              status.ok() ? done(std::monostate()) : done(std::move(status));
            });
      });
  const bool may_be_done = changed.status().code() == runtime::ErrorCode::kDeadlineExceeded ||
                           changed.status().code() == runtime::ErrorCode::kUnavailable;
  if (may_be_done)
    return runtime::Status(
        changed.status().code(),
        std::string(changed.status().message()) +
            "; the token may have been changed all the same: `starling token` on a "
            "machine of the cluster prints the one that counts");
  if (!changed.ok()) return changed.status();
  tell_next_steps(*grace);
  std::printf("%s\n", token->c_str());
  return {};
}

}  // namespace

int token_command(const TokenCommandOptions& options) {
  if (options.change) {
    const runtime::Status changed = change_token(options);
    return changed.ok() ? 0 : fail(changed);
  }
  auto cluster = runtime::find_cluster(options.address);
  if (!cluster.ok()) return fail(cluster.status());
  if (options.submitter && !runtime::key_of_caller(cluster->token).id.is_none())
    return fail(runtime::invalid_argument("STARLING_TOKEN is a submitter's token already"));
  std::printf("%s\n", options.submitter ? runtime::submitter_token(cluster->token).c_str()
                                        : cluster->token.c_str());
  return 0;
}

}  // namespace placement
