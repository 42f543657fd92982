// `starling status` and `starling list`.
#pragma once

#include <string>

namespace runtime {

/// What the cluster is and does, for people or as one JSON object. Exit code 1: no cluster, or it does not answer.
int status_command(const std::string& address, bool json);

/// One kind of thing: "nodes", "actors", "jobs" or "placement-groups". Exit code 2: another kind.
int list_command(const std::string& address, const std::string& kind, bool json);

}  // namespace runtime
