#include "runtime/store/ended_owners.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using object_detail::EndedOwners;
using support::expect_failure;

TEST(EndedOwners, ALossNamesTheOwnerAndHowItEnded) {
  const NodeId node = NodeId::random();
  EndedOwners owners(
      node, [](pid_t pid) { return pid == 12 ? std::string("killed by SIGKILL") : std::string(); });
  PeerInfo worker;
  worker.role = Role::kWorker;
  worker.worker = WorkerId::random();
  worker.pid = 12;
  owners.note({7, 8}, worker);
  PeerInfo driver;
  driver.role = Role::kDriver;
  driver.pid = 13;
  owners.note({9}, driver);
  const std::string who = "worker " + worker.worker.short_hex() + " (pid 12";
  for (const std::uint64_t extent : {7, 8})
    expect_failure(owners.lost(extent), ErrorCode::kObjectLost,
                   {who, node.short_hex(), "ended: killed by SIGKILL"});
  const Status unknown = owners.lost(9);
  expect_failure(unknown, ErrorCode::kObjectLost, {"driver (pid 13"});
  EXPECT_TRUE(unknown.message().ends_with("ended")) << "how is not known: " << unknown.message();
}

TEST(EndedOwners, WhatNoOwnersEndExplainsWasFreed) {
  EndedOwners owners({}, nullptr);
  expect_failure(owners.lost(7), ErrorCode::kObjectLost, {"it was freed"});
  owners.note({7}, {});
  expect_failure(owners.lost(7), ErrorCode::kObjectLost, {"its owner"});
}

TEST(EndedOwners, TheOldestAreForgotten) {
  EndedOwners owners({}, nullptr);
  std::vector<std::uint64_t> extents(50'001);
  for (std::size_t i = 0; i < extents.size(); ++i) extents[i] = i;
  owners.note(extents, {});
  expect_failure(owners.lost(0), ErrorCode::kObjectLost, {"it was freed"});
  expect_failure(owners.lost(1), ErrorCode::kObjectLost, {"its owner"});
  expect_failure(owners.lost(50'000), ErrorCode::kObjectLost, {"its owner"});
}

}  // namespace
}  // namespace runtime
