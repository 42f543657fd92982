#include "runtime/process/job_user.h"

#include <arpa/inet.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "runtime/transport/endpoint.h"

namespace runtime {

namespace {

constexpr int kGroupsMax = 1024;
constexpr const char* kEstablished = "01";

using Raw = std::array<unsigned char, 16>;

/// An address as /proc/net/tcp6 has it: IPv4 ones within ::ffff:0:0/96.
std::optional<Raw> raw_address(const std::string& host) {
  Raw raw{};
  if (::inet_pton(AF_INET6, host.c_str(), raw.data()) == 1) return raw;
  raw[10] = raw[11] = 0xff;
  if (::inet_pton(AF_INET, host.c_str(), raw.data() + 12) == 1) return raw;
  return std::nullopt;
}

/// "0100007F:1F90", or 32 digits: words in the machine's own order.
bool read_row_address(const std::string& text, Raw& raw, unsigned& port) {
  const std::size_t colon = text.find(':');
  if (colon != 8 && colon != 32) return false;
  raw = {};
  if (colon == 8) raw[10] = raw[11] = 0xff;
  for (std::size_t word = 0; word < colon / 8; ++word) {
    unsigned value = 0;
    if (std::sscanf(text.substr(word * 8, 8).c_str(), "%8x", &value) != 1) return false;
    std::memcpy(raw.data() + (colon == 8 ? 12 : word * 4), &value, 4);
  }
  return std::sscanf(text.c_str() + colon + 1, "%4x", &port) == 1;
}

JobUser user_of(const passwd& entry) {
  JobUser user{entry.pw_uid, entry.pw_gid, {}, entry.pw_name, entry.pw_dir, entry.pw_shell};
  int count = kGroupsMax;
  user.groups.resize(kGroupsMax);
  if (::getgrouplist(entry.pw_name, entry.pw_gid, user.groups.data(), &count) < 0)
    count = kGroupsMax;
  user.groups.resize(static_cast<std::size_t>(count));
  return user;
}

template <class Find>
Result<JobUser> find_entry(Find find, const std::string& what) {
  std::vector<char> space(64 << 10);
  passwd entry{};
  passwd* found = nullptr;
  if (find(&entry, space.data(), space.size(), &found) != 0 || !found)
    return not_found("this machine knows no user " + what);
  return user_of(entry);
}

}  // namespace

Result<JobUser> find_user(const std::string& name) {
  return find_entry(
      [&](passwd* entry, char* space, std::size_t bytes, passwd** found) {
        return ::getpwnam_r(name.c_str(), entry, space, bytes, found);
      },
      "'" + name + "'");
}

Result<JobUser> find_user(uid_t uid) {
  return find_entry([&](passwd* entry, char* space, std::size_t bytes,
                        passwd** found) { return ::getpwuid_r(uid, entry, space, bytes, found); },
                    std::to_string(uid));
}

std::string user_name(uid_t uid) {
  auto user = find_user(uid);
  return user.ok() ? user->name : "user " + std::to_string(uid);
}

std::optional<uid_t> peer_user(const PeerInfo& peer, const std::string& node_address) {
  if (peer.address.starts_with("unix:")) return peer.uid;
  auto remote = Endpoint::parse(peer.address);
  auto own = Endpoint::parse(node_address);
  if (!remote.ok() || !own.ok()) return std::nullopt;
  const std::optional<Raw> wanted = raw_address(remote->host);
  if (!wanted) return std::nullopt;
  // The peer's own socket, if it is one of this machine's: its owner is who made it. Only while
  // it is open, since one that is not belongs to no process.
  std::optional<uid_t> found;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream rows(table);
    std::string line;
    for (std::getline(rows, line); std::getline(rows, line);) {
      std::istringstream fields(line);
      std::string number, local, other, state, queues, timer, retransmits;
      uid_t uid = 0;
      unsigned long timeout = 0, inode = 0;
      if (!(fields >> number >> local >> other >> state >> queues >> timer >> retransmits >> uid >>
            timeout >> inode))
        continue;
      Raw address, other_address;
      unsigned port = 0, other_port = 0;
      if (!read_row_address(local, address, port) ||
          !read_row_address(other, other_address, other_port))
        continue;
      if (port != remote->port || address != *wanted || other_port != own->port ||
          state != kEstablished || inode == 0)
        continue;
      // Root finds the Unix socket: this may be a proxy that runs as root, for whomever. And where
      // a node listens at several addresses, two users may have the same port: neither is proven.
      if (uid == 0 || (found && *found != uid)) return std::nullopt;
      found = uid;
    }
  }
  return found;
}

Result<std::optional<JobUser>> choose_job_user(const PeerInfo& peer,
                                               const std::string& node_address,
                                               const std::string& job_user) {
  return choose_job_user(peer_user(peer, node_address), peer.address, job_user);
}

Result<std::optional<JobUser>> choose_job_user(std::optional<uid_t> proven,
                                               const std::string& peer_address,
                                               const std::string& job_user) {
  const uid_t own = ::geteuid();
  if (proven == own) return std::optional<JobUser>();
  if (own != 0) {
    if (!proven)
      return std::optional<JobUser>();  // from another machine: the holder of the token is the
                                        // cluster's user
    return invalid_argument("this node belongs to " + user_name(own) + " and cannot run jobs as " +
                            user_name(*proven) + "; submit as " + user_name(own) +
                            ", start your own cluster, or have root start the node");
  }
  if (!proven && job_user.empty()) {
    return invalid_argument("this node runs as root, and nothing proves who submits a job from " +
                            peer_address +
                            "; submit on the node's own machine, or start it with --job-user NAME, "
                            "as whom such jobs run");
  }
  auto user = proven ? find_user(*proven) : find_user(job_user);
  if (!user.ok()) return user.status();
  if (user->uid == own) return std::optional<JobUser>();  // --job-user root
  return std::optional<JobUser>(std::move(*user));
}

}  // namespace runtime
