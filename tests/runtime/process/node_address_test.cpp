#include "runtime/process/node_address.h"

#include <gtest/gtest.h>

#include "runtime/process/machine.h"

namespace runtime {
namespace {

bool leads(const std::string& wanted, const std::string& bound) {
  return leads_to(*Endpoint::parse(wanted), *Endpoint::parse(bound));
}

SessionInfo session_of_node(const std::string& address, const std::string& bound = "") {
  SessionInfo info;
  info.address = address;
  info.bound = bound;
  return info;
}

TEST(NodeAddress, NamesOfOneAddressLeadToIt) {
  EXPECT_TRUE(leads("localhost:7000", "127.0.0.1:7000"));
  EXPECT_TRUE(leads("127.0.0.1:7000", "localhost:7000"));
  EXPECT_TRUE(leads("[::ffff:127.0.0.1]:7000", "127.0.0.1:7000"));
  EXPECT_FALSE(leads("localhost:7000", "127.0.0.1:7001"));
  EXPECT_FALSE(leads("127.0.0.2:7000", "127.0.0.1:7000"));
}

TEST(NodeAddress, AnyAddressTakesThoseOfThisMachine) {
  EXPECT_TRUE(leads("127.0.0.1:7000", "0.0.0.0:7000"));
  EXPECT_TRUE(leads(outward_address() + ":7000", "0.0.0.0:7000"));
  EXPECT_TRUE(leads("127.0.0.1:7000", "[::]:7000"));
  EXPECT_FALSE(leads("[::1]:7000", "0.0.0.0:7000"));
  EXPECT_FALSE(leads("192.0.2.1:7000", "0.0.0.0:7000")) << "of no machine";
  EXPECT_TRUE(leads("0.0.0.0:7000", "127.0.0.1:7000")) << "as the kernel connects";
}

TEST(NodeAddress, UnixSocketsAreNoAddresses) {
  EXPECT_FALSE(leads_to(*Endpoint::unix_socket("/tmp/a"), *Endpoint::unix_socket("/tmp/a")));
}

TEST(NodeAddress, ASessionIsFoundByItsOwnTextFirst) {
  const std::vector<SessionInfo> sessions = {session_of_node("127.0.0.1:7000", "0.0.0.0:7000"),
                                             session_of_node("localhost:7000", "127.0.0.1:7000"),
                                             session_of_node("[::1]:7001")};
  EXPECT_EQ(session_at(sessions, "localhost:7000"), &sessions[1]);
  EXPECT_EQ(session_at(sessions, "0.0.0.0:7000"), &sessions[0]);
  EXPECT_EQ(session_at(sessions, "localhost:7001"), &sessions[2]) << "listens where it says";
  EXPECT_EQ(session_at(sessions, "localhost:7002"), nullptr);
  EXPECT_EQ(session_at(sessions, "no address"), nullptr);
}

}  // namespace
}  // namespace runtime
