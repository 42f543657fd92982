// The user of a job: on one machine the kernel says who is at the other end of a connection.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/transport/channel.h"

namespace runtime {

/// A user of this machine, as a process becomes one.
struct JobUser {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  std::string name, home, shell;
};

/// "alice"; "user 1007" when the machine has no name for it.
std::string user_name(uid_t uid);
/// By name. Errors: kNotFound.
Result<JobUser> find_user(const std::string& name);
Result<JobUser> find_user(uid_t uid);

/// Who is at the other end: of a Unix socket, or of a TCP connection within this machine. Nothing:
/// on another machine, or gone.
std::optional<uid_t> peer_user(const PeerInfo& peer, const std::string& node_address);

/// Whom a job that comes over this connection is to run as, with what peer_user() says of it.
/// Nothing: as the node itself. A node of root becomes the user who submits, when that is proven;
/// others' jobs run as `job_user` (starling start --job-user), or not at all. A node of any other
/// user cannot change its user: kInvalidArgument names both.
Result<std::optional<JobUser>> choose_job_user(std::optional<uid_t> proven,
                                               const std::string& peer_address,
                                               const std::string& job_user);
/// The same for one who was not asked for before.
Result<std::optional<JobUser>> choose_job_user(const PeerInfo& peer,
                                               const std::string& node_address,
                                               const std::string& job_user);

}  // namespace runtime
