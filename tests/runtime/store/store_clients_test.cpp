#include "runtime/store/store_clients.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "tests/runtime/transport/channel_pair.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using object_detail::StoreClients;

class StoreClientsTest : public ::testing::Test {
 protected:
  std::unique_ptr<ChannelPair> connect(Role role) {
    return std::make_unique<ChannelPair>(loop_, peer_of(role));
  }
  StoreClients::Client number_of(const ChannelPair& pair) {
    return on_loop(loop_, [&] { return clients_.number_of(pair.near); });
  }
  std::vector<std::shared_ptr<Channel>> processes() {
    return on_loop(loop_, [&] { return clients_.processes(); });
  }

  EventLoop loop_;
  StoreClients clients_;
};

TEST_F(StoreClientsTest, AConnectionKeepsItsNumberAndNoneGetsThatOfAnother) {
  auto first = connect(Role::kWorker), second = connect(Role::kWorker);
  const auto number = number_of(*first);
  EXPECT_EQ(number_of(*first), number);
  EXPECT_NE(number_of(*second), number);
  EXPECT_NE(number, object_detail::kStoreItself);
  run_on(loop_, [&] {
    EXPECT_EQ(clients_.channel_of(number), first->near);
    EXPECT_EQ(clients_.remove(*first->near), number);
    EXPECT_EQ(clients_.remove(*first->near), std::nullopt);
    EXPECT_EQ(clients_.channel_of(number), nullptr);
  });
  EXPECT_NE(number_of(*first), number) << "what is known by the old number is over";
}

TEST_F(StoreClientsTest, OnlyProcessesThatMayReferToObjectsAreAsked) {
  auto worker = connect(Role::kWorker), driver = connect(Role::kDriver),
       node = connect(Role::kNode), tool = connect(Role::kTool), ended = connect(Role::kWorker);
  for (const auto& pair : {&worker, &driver, &node, &tool, &ended}) number_of(**pair);
  ended->close();
  EXPECT_TRUE(comes_true(loop_, [&] { return ended->near->closed(); }));
  EXPECT_EQ(processes(), (std::vector{worker->near, driver->near}));
}

TEST_F(StoreClientsTest, WhoHasEndedIsHeardOfAsGone) {
  auto pair = connect(Role::kWorker);
  number_of(*pair);
  std::optional<bool> gone;
  bool is_done = false;
  run_on(loop_, [&] {
    clients_.ask_processes(
        {}, 20s,
        [&](const PeerInfo& peer, Result<object_wire::Reply> reply, bool is_gone) {
          EXPECT_EQ(peer.role, Role::kWorker);
          EXPECT_FALSE(reply.ok());
          EXPECT_FALSE(is_done);
          gone = is_gone;
        },
        [&] { is_done = true; });
    EXPECT_FALSE(is_done);
  });
  pair->far->close(cancelled("it ends"));
  EXPECT_TRUE(comes_true(loop_, [&] { return is_done; }));
  EXPECT_EQ(on_loop(loop_, [&] { return gone; }), true);
}

TEST_F(StoreClientsTest, WithNoneToAskItIsDoneAtOnce) {
  run_on(loop_, [&] {
    bool is_done = false;
    clients_.ask_processes(
        {}, 20s, [](const PeerInfo&, const auto&, bool) { ADD_FAILURE(); },
        [&] { is_done = true; });
    EXPECT_TRUE(is_done);
  });
}

}  // namespace
}  // namespace runtime
