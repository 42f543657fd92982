#include "runtime/store/ended_owners.h"

namespace runtime::object_detail {
namespace {

constexpr std::size_t kEndedMax = 50'000;

std::string describe_owner(const PeerInfo& peer) {
  if (peer.role == Role::kWorker) return "worker " + peer.worker.short_hex();
  if (peer.role == Role::kDriver) return "driver";
  return "process";
}

}  // namespace

void EndedOwners::note(const std::vector<std::uint64_t>& extents, const PeerInfo& owner) {
  for (std::uint64_t extent : extents) {
    owners_.emplace(extent, Owner{describe_owner(owner), owner.pid});
    order_.push_back(extent);
  }
  while (order_.size() > kEndedMax) {
    owners_.erase(order_.front());
    order_.pop_front();
  }
}

Status EndedOwners::lost(std::uint64_t extent) const {
  auto known = owners_.find(extent);
  if (known == owners_.end()) return object_lost("it was freed: no reference to it was left");
  const Owner& owner = known->second;
  std::string how = how_ended_ ? how_ended_(owner.pid) : "";
  return object_lost("its owner, " + owner.who + " (pid " + std::to_string(owner.pid) +
                     " on node " + node_.short_hex() + "), ended" +
                     (how.empty() ? "" : ": " + how));
}

}  // namespace runtime::object_detail
