#include "runtime/transport/peer_info.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

TEST(PeerInfo, IsDescribedByWhatTellsItFromOthers) {
  PeerInfo peer;
  peer.node = NodeId::random();
  peer.worker = WorkerId::random();
  peer.address = "10.0.0.2:41822";
  peer.role = Role::kNode;
  EXPECT_EQ(peer.describe(), "node " + peer.node.short_hex() + " at 10.0.0.2:41822");
  peer.role = Role::kWorker;
  peer.pid = 1234;
  EXPECT_EQ(peer.describe(), "worker " + peer.worker.short_hex() + " (pid 1234) at 10.0.0.2:41822");
  peer.role = Role::kDriver;
  EXPECT_EQ(peer.describe(), "driver (pid 1234) at 10.0.0.2:41822");
  peer.role = static_cast<Role>(77);
  EXPECT_EQ(peer.describe(), "peer (pid 1234) at 10.0.0.2:41822") << "of a newer release";
}

}  // namespace
}  // namespace runtime
