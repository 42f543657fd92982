#include "rl/comm/peer_process.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace rl {

using runtime::Status;

// Fails where there is no Yama, and nothing is to be allowed.
void let_peers_read() { (void)::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

PeerProcess::PeerProcess(pid_t pid)
    : pid_(pid), descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

bool PeerProcess::has_ended() const {
  pollfd ended{.fd = descriptor_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&ended, 1, 0) == 1;
}

Status PeerProcess::read(std::uint64_t address, std::span<std::byte> into) const {
  while (!into.empty()) {
    iovec here{into.data(), into.size()};
    iovec there{reinterpret_cast<void*>(address), into.size()};
    const ssize_t got = ::process_vm_readv(pid_, &here, 1, &there, 1, 0);
    if (got <= 0) {
      const std::string who = "process " + std::to_string(pid_);
      if (got < 0 && errno == ESRCH) return runtime::unavailable(who + " has ended");
      return runtime::internal_error("the memory of " + who + " can't be read: " +
                                     (got < 0 ? std::strerror(errno) : "nothing came"));
    }
    address += static_cast<std::uint64_t>(got);
    into = into.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

}  // namespace rl
