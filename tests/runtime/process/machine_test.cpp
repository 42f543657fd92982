#include "runtime/process/machine.h"

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using support::expect_failure;

bool is_ours(const char* address) {
  return is_address_of_this_machine(asio::ip::make_address(address));
}

TEST(Machine, ANodeOffersWhatThisProcessMayUse) {
  const ResourceMap resources = machine_resources(false);
  EXPECT_EQ(resources.at("CPU"), machine_cpus());
  EXPECT_GE(machine_cpus(), 1);
  EXPECT_GT(resources.at("memory"), 0);
  EXPECT_FALSE(resources.contains("GPU")) << "none were looked for";
}

TEST(Machine, AnAddressTowardsAHostIsOneOfThisMachines) {
  EXPECT_EQ(local_address_towards("127.0.0.1").value_or(""), "127.0.0.1");
  EXPECT_EQ(local_address_towards(outward_address()).value_or(""), outward_address());
  expect_failure(local_address_towards("no..host").status(), ErrorCode::kUnavailable,
                 {"'no..host'"});
}

TEST(Machine, KnowsItsOwnAddresses) {
  EXPECT_TRUE(is_ours("127.0.0.1"));
  EXPECT_TRUE(is_ours(outward_address().c_str()));
  EXPECT_FALSE(is_ours("192.0.2.1"));  // RFC 5737: of no machine
  EXPECT_FALSE(is_ours("2001:db8::1"));
}

}  // namespace
}  // namespace runtime
