// PeerProcess: another process of this machine, whose end is noticed and whose memory is read.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/core/result.h"
#include "runtime/transport/file_descriptor.h"

namespace rl {

/// Lets processes of this user read this one's memory where Yama would not (ptrace_scope 1).
void let_peers_read();

/// A process of this PID namespace.
class PeerProcess {
 public:
  PeerProcess() = default;  // none
  explicit PeerProcess(pid_t pid);

  /// Whether it was there, and can be watched.
  explicit operator bool() const { return static_cast<bool>(descriptor_); }
  bool has_ended() const;

  /// Copies what it has at `address`. A process that ends meanwhile may leave its number to another
  /// one: look at has_ended() afterwards. kUnavailable: it has ended; kInternal: the system does
  /// not allow it, or there is nothing at that address.
  runtime::Status read(std::uint64_t address, std::span<std::byte> into) const;

 private:
  pid_t pid_ = -1;
  runtime::FileDescriptor descriptor_;
};

}  // namespace rl
