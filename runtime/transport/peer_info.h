// PeerInfo: the identity of the process at the other end of a connection.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/ids.h"

namespace runtime {

/// What a process is in its cluster.
enum class Role : std::uint16_t { kNode = 1, kWorker = 2, kDriver = 3, kTool = 4 };

/// Who is at the other end, proved by the handshake (the token) and told by its Hello.
struct PeerInfo {
  Role role = Role::kTool;
  ClusterId cluster;
  NodeId node;      // none for a node-less tool
  WorkerId worker;  // workers only
  std::uint64_t incarnation = 0;
  std::uint32_t protocol = 0;  // the version both speak
  std::string version;         // the peer's release, for messages
  std::string address;         // "10.0.0.2:41822", or "unix:/path"
  pid_t pid = 0;               // from the kernel on Unix sockets, else as the peer says
  std::optional<uid_t> uid{};  // from the kernel, on Unix sockets
  bool is_submitter = false;   // has a submitter's token, not the cluster's

  /// For messages: "worker 7f3a0011 (pid 1234) at unix:/run/...".
  std::string describe() const;
};

}  // namespace runtime
