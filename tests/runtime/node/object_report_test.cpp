#include "runtime/node/object_report.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

ObjectLocation at(NodeId node, std::uint64_t size) {
  ObjectLocation location;
  location.id = ObjectId::random();
  location.node = node;
  location.size = size;
  return location;
}

TEST(ObjectReport, JoinsWhatOwnersAndBorrowersSay) {
  const NodeId node = NodeId::random();
  const ObjectLocation object = at(node, 100);
  StoreList store;
  StoreList::OfProcess owner, borrower;
  owner.role = Role::kDriver;
  owner.pid = 7;
  owner.report.objects.push_back({.location = object, .owned = true, .handles = 2});
  borrower.role = Role::kWorker;
  borrower.pid = 8;
  borrower.report.objects.push_back({.location = object, .owned = false, .handles = 1});
  store.processes = {owner, borrower};
  const ObjectList list = object_list(node, store);
  ASSERT_EQ(list.objects.size(), 1u);
  EXPECT_EQ(list.objects[0].owner, "driver");
  EXPECT_EQ(list.objects[0].owner_pid, 7);
  EXPECT_EQ(list.objects[0].handles, 2u);
  ASSERT_EQ(list.objects[0].borrowers.size(), 1u);
  EXPECT_EQ(list.objects[0].borrowers[0].pid, 8);
}

TEST(ObjectReport, SaysWhoIsSilentAndWhatTheClusterOwns) {
  const NodeId node = NodeId::random();
  StoreList store;
  StoreList::Process silent;
  silent.role = Role::kDriver;
  silent.pid = 9;
  store.silent = {silent};
  store.adopted = {at(node, 5)};
  const ObjectList list = object_list(node, store);
  ASSERT_EQ(list.troubles.size(), 1u);
  EXPECT_NE(list.troubles[0].find("driver (pid 9)"), std::string::npos);
  ASSERT_EQ(list.objects.size(), 1u);
  EXPECT_EQ(list.objects[0].owner, "cluster");
}

}  // namespace
}  // namespace runtime
