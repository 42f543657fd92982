#include "runtime/transport/dialled_address.h"

#include <gtest/gtest.h>

#include "runtime/transport/file_descriptor.h"
#include "tests/support/listening_socket.h"

namespace runtime {
namespace {

constexpr int kNoSocket = -1;

TEST(OwnAddresses, AreTheBoundOneAndTheOthers) {
  const OwnAddresses own(Endpoint::tcp("0.0.0.0", 7000),
                         {Endpoint::tcp("node.example", 0), Endpoint::tcp("gate", 9000)});
  const auto meant = [&](std::string_view dialled) {
    return own.includes(digest_of(*Endpoint::parse(dialled)), {}, kNoSocket);
  };
  EXPECT_TRUE(meant("0.0.0.0:7000"));
  EXPECT_TRUE(meant("node.example:7000"));
  EXPECT_TRUE(meant("NODE.Example:7000"));
  EXPECT_TRUE(meant("gate:9000"));
  EXPECT_FALSE(meant("gate:7000"));
  EXPECT_FALSE(meant("node.example:9000"));
  EXPECT_FALSE(meant("other.example:7000"));
  EXPECT_FALSE(own.includes({}, {}, kNoSocket));
}

TEST(OwnAddresses, AWorkerBehindANodeHasTheNodes) {
  const Endpoint node = Endpoint::tcp("10.0.0.1", 7000);
  EXPECT_EQ(digest_of(node), digest_of(node.for_worker(WorkerId::random())));
}

TEST(OwnAddresses, IncludeWhereAConnectionArrives) {
  const FileDescriptor listener = support::listen_at("0.0.0.0", 0);
  const std::uint16_t port = support::port_of(listener);
  const OwnAddresses own(Endpoint::tcp("0.0.0.0", port), {});
  const FileDescriptor caller = support::connect_to("127.0.0.1", port);
  const FileDescriptor arrived(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const AddressDigest reached = digest_of_peer_address(caller.get());
  ASSERT_FALSE(reached.is_none());
  EXPECT_EQ(reached, digest_of(Endpoint::tcp("127.0.0.1", port)));
  const AddressDigest by_name = digest_of(Endpoint::tcp("localhost", port));
  EXPECT_TRUE(own.includes(by_name, reached, arrived.get()));
  // The same name, but the connection went to another port: it was relayed.
  const AddressDigest elsewhere =
      digest_of(Endpoint::tcp("127.0.0.1", static_cast<std::uint16_t>(port + 1)));
  EXPECT_FALSE(own.includes(by_name, elsewhere, arrived.get()));
}

}  // namespace
}  // namespace runtime
