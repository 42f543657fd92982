#include "runtime/node/cli_token.h"

#include <cstdio>

#include "runtime/node/cli_nodes.h"
#include "runtime/node/session.h"
#include "runtime/transport/token_key.h"

namespace runtime {

int token_command(const std::string& address, bool submitter) {
  auto cluster = find_cluster(address);
  if (!cluster.ok()) return fail(cluster.status());
  if (submitter && !key_of_caller(cluster->token).id.is_none())
    return fail(invalid_argument("STARLING_TOKEN is a submitter's token already"));
  std::printf("%s\n", submitter ? submitter_token(cluster->token).c_str() : cluster->token.c_str());
  return 0;
}

}  // namespace runtime
