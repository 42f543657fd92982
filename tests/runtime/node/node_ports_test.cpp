#include "runtime/node/node_ports.h"

#include "runtime/transport/blocking.h"
#include "tests/runtime/transport/fixture.h"

namespace runtime {
namespace {

ListenerCallbacks callbacks() {
  ListenerCallbacks made;
  made.on_channel = [](const std::shared_ptr<Channel>&) {};
  return made;
}

TEST(NodePorts, ListensAtAPortAndASocket) {
  support::TemporaryFolder folder;
  EventLoop loop;
  NodePortsOptions options;
  options.bind = Endpoint::tcp("127.0.0.1", 0);
  options.socket = folder.path() / "node.sock";
  const auto listen = [&] {
    return NodePorts::listen(loop, options, credentials_of(Role::kNode), callbacks());
  };
  auto ports = on_loop(loop, listen);
  ASSERT_TRUE(ports.ok()) << ports.status().to_string();
  EXPECT_TRUE(std::filesystem::exists(options.socket));
  const auto bound = Endpoint::parse((*ports)->address());
  ASSERT_TRUE(bound.ok());
  options.bind = *bound;
  options.socket = folder.path() / "other.sock";
  EXPECT_EQ(on_loop(loop, listen).status().code(), ErrorCode::kUnavailable) << "the port is taken";
  on_loop(loop, [&] {
    (*ports)->stop();
    ports->reset();
    return 0;
  });
}

TEST(NodePorts, AdvertisesAnotherHost) {
  support::TemporaryFolder folder;
  EventLoop loop;
  NodePortsOptions options;
  options.bind = Endpoint::tcp("127.0.0.1", 0);
  options.advertise_host = "node-7";
  options.socket = folder.path() / "node.sock";
  auto ports = on_loop(loop, [&] {
    return NodePorts::listen(loop, options, credentials_of(Role::kNode), callbacks());
  });
  ASSERT_TRUE(ports.ok()) << ports.status().to_string();
  EXPECT_TRUE((*ports)->address().starts_with("node-7:")) << (*ports)->address();
  on_loop(loop, [&] {
    (*ports)->stop();
    ports->reset();
    return 0;
  });
}

}  // namespace
}  // namespace runtime
