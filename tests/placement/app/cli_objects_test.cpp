#include "placement/app/cli_objects.h"

#include "tests/placement/app/fake_cluster.h"

namespace placement {
namespace {

class ListObjectsCommand : public ::testing::Test {
 protected:
  ListObjectsCommand() {
    cluster_.on<runtime::ObjectControl>(
        [this](const auto&) { return runtime::ObjectControlAnswer(list_); });
  }
  runtime::ObjectInfo& add_object() {
    runtime::ObjectInfo object;
    object.id = runtime::ObjectId::random();
    object.size = 3 << 19;
    object.node = cluster_.node().id;
    object.place = runtime::ObjectPlace::kMemory;
    return list_.objects.emplace_back(object);
  }
  Said list(bool json = false, const Filters& filters = {}) {
    return said_by([&] { return list_objects_command(cluster_.address(), json, filters); });
  }

  FakeCluster cluster_;
  runtime::ObjectList list_;
};

TEST_F(ListObjectsCommand, NamesAllThatKeepsAnObject) {
  runtime::ObjectInfo& object = add_object();
  object.owner = "Counter 7f3a0011";
  object.owner_pid = 12;
  object.handles = 2;
  object.lent = 3;
  object.in_flight = 1;
  object.held = 1;
  object.readers = 1;
  object.borrowers = {{cluster_.node().id, 13, 1, "driver"}};
  object.published = {"lab/weights@3"};
  object.copies = {runtime::NodeId::random(), runtime::NodeId::random()};
  expect_said(list().out,
              {object.id.hex(), "1.500 MiB  node " + object.node.short_hex() + "  memory",
               "Counter 7f3a0011 (pid 12): 2 handles, lent 3 (1 in flight), held for borrowers, "
               "1 reader, borrowed by driver (pid 13), published as lab/weights@3, 2 copies\n"});
}

TEST_F(ListObjectsCommand, AnObjectWithoutAnOwnerSaysWhetherItIsLost) {
  add_object();
  expect_said(list().out, {"no references: \n"});
  list_.objects[0].readers = 1;
  expect_said(list().out, {"owner gone: 1 reader\n"});
  list_.troubles = {"node 33aa has not answered"};
  const Said said = list();
  expect_said(said.out, {"owner unknown, not all have answered: 1 reader\n"});
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.err, "node 33aa has not answered\n");
}

TEST_F(ListObjectsCommand, FiltersLeaveTheStores) {
  add_object().owner = "driver";
  add_object().owner = "Counter 1";
  runtime::StoreInfo store;
  store.node = cluster_.node().id;
  store.capacity_bytes = 4 << 20;
  store.leased_bytes = 1 << 20;
  list_.stores = {store};
  list_.truncated = true;
  expect_said(list().out, {"(and more: a node names at most 10000)",
                           "store of node " + store.node.short_hex() + ": 1.0 of 4.0 MiB"});
  const Said said = list(true, {{"owner", "driver"}});
  const auto json = nlohmann::ordered_json::parse(said.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << said.out;
  ASSERT_EQ(json["objects"].size(), 1u);
  EXPECT_EQ(json["objects"][0]["id"], list_.objects[0].id.hex());
  EXPECT_EQ(json["objects"][0]["owner_node"], "") << "none is no id of zeros";
  EXPECT_EQ(json["stores"].size(), 1u);
  EXPECT_EQ(json["truncated"], true);
}

}  // namespace
}  // namespace placement
