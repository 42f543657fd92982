#include "runtime/transport/peer_info.h"

#include <string_view>

namespace runtime {
namespace {

std::string_view role_name(Role role) {
  switch (role) {
    case Role::kNode: return "node";
    case Role::kWorker: return "worker";
    case Role::kDriver: return "driver";
    case Role::kTool: return "tool";
  }
  return "peer";
}

}  // namespace

std::string PeerInfo::describe() const {
  std::string text(role_name(role));
  if (role == Role::kNode) text += " " + node.short_hex();
  if (role == Role::kWorker) text += " " + worker.short_hex();
  if (pid != 0) text += " (pid " + std::to_string(pid) + ")";
  return text + " at " + address;
}

}  // namespace runtime
