// The list of all objects, put together from what the nodes and the head know.
#include "runtime/head/object_lists.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class ObjectListsTest : public PartTest {
 protected:
  ObjectListsTest() : node_(add_node(4)), other_(add_node(4)) {}

  Answer ask() {
    auto answer = std::make_shared<std::optional<Result<ControlAnswer>>>();
    HeadCall call;
    call.deadline = time_ + 10s;
    lists_.serve(call, [answer](Result<ControlAnswer> result) {
      EXPECT_FALSE(answer->has_value()) << "answered twice";
      answer->emplace(std::move(result));
    });
    return answer;
  }
  /// The node answers what it was asked.
  void reply(NodeId node, Result<ControlAnswer> answer) {
    for (auto at = links_.requests.begin(); at != links_.requests.end(); ++at) {
      if (at->node != node) continue;
      SentRequest sent = std::move(*at);
      links_.requests.erase(at);
      return sent.answer(std::move(answer));
    }
    ADD_FAILURE() << "that node was not asked";
  }
  void reply(NodeId node, std::vector<ObjectInfo> objects) {
    ObjectList list;
    list.objects = std::move(objects);
    reply(node, ControlAnswer{ObjectControlAnswer{std::move(list)}});
  }
  static ObjectList list(const Answer& answer) {
    EXPECT_TRUE(status(answer).ok()) << status(answer).message();
    if (!status(answer).ok()) return {};
    return std::get<ObjectList>(std::get<ObjectControlAnswer>(***answer));
  }
  ObjectInfo object(ObjectId id) const {
    ObjectInfo info;
    info.id = id;
    info.node = node_;
    info.size = 100;
    info.place = ObjectPlace::kMemory;
    return info;
  }
  ObjectInfo owned(ObjectId id, std::int32_t pid) const {
    ObjectInfo info = object(id);
    info.owner_node = node_;
    info.owner_pid = pid;
    info.owner = "driver";
    return info;
  }
  /// As the process says that has it from another.
  ObjectInfo borrowed(ObjectId id, std::int32_t pid) const {
    ObjectInfo info = object(id);
    info.borrowers.push_back({other_, pid, 1, "driver"});
    return info;
  }
  void publish(const std::string& name, PublishedValue value) {
    context_.commit(command::Publish{{"space", name}, 3, std::move(value), ""});
  }

  const NodeId node_, other_;
  const ObjectId id_ = ObjectId::random();
  ObjectLists lists_{context_};
};

TEST_F(ObjectListsTest, IsAnsweredOnceAllNodesHave) {
  const Answer answer = ask();
  ASSERT_EQ(links_.requests.size(), 2u);
  EXPECT_EQ(links_.requests[0].request.timeout, 5s) << "so that one that is silent is no trouble";
  reply(node_, {owned(id_, 7)});
  EXPECT_FALSE(answer->has_value());
  reply(other_, {borrowed(id_, 8)});
  ASSERT_EQ(list(answer).objects.size(), 1u);
  const ObjectInfo known = list(answer).objects[0];
  EXPECT_EQ(known.owner, "driver");
  EXPECT_EQ(known.borrowers.size(), 1u);
  EXPECT_TRUE(list(answer).troubles.empty());
}

TEST_F(ObjectListsTest, WithoutNodesItIsAnsweredAtOnce) {
  for (const NodeId& node : {node_, other_}) context_.commit(command::RemoveNode{node, "gone"});
  EXPECT_TRUE(list(ask()).objects.empty());
}

TEST_F(ObjectListsTest, ANodeThatDoesNotAnswerIsNamed) {
  const Answer answer = ask();
  reply(other_, unavailable("it is gone"));
  reply(node_, {borrowed(id_, 8)});
  ASSERT_EQ(list(answer).troubles.size(), 1u);
  const std::string trouble = list(answer).troubles[0];
  EXPECT_NE(trouble.find(other_.short_hex()), std::string::npos) << trouble;
  EXPECT_NE(trouble.find("it is gone"), std::string::npos) << trouble;
  EXPECT_EQ(list(answer).objects.size(), 1u)
      << "its owner may be on the node that is silent: asking again would not help";
}

TEST_F(ObjectListsTest, WhatLacksAnOwnerIsLookedForAgain) {
  const ObjectId made = ObjectId::random(), dropped = ObjectId::random();
  const Answer answer = ask();
  reply(node_, {owned(dropped, 7)});
  reply(other_, {borrowed(id_, 8), borrowed(dropped, 8)});
  EXPECT_FALSE(answer->has_value());
  ASSERT_EQ(links_.requests.size(), 2u);
  reply(node_, std::vector<ObjectInfo>());
  reply(other_, {borrowed(id_, 8), borrowed(dropped, 8), borrowed(made, 8)});
  const ObjectList last = list(answer);
  ASSERT_EQ(last.objects.size(), 2u) << "the one that has just been made is left out";
  for (const ObjectInfo& known : last.objects)
    EXPECT_EQ(known.owner, known.id == dropped ? "driver" : "") << "as it was before";
  EXPECT_TRUE(links_.requests.empty()) << "twice is enough";
}

TEST_F(ObjectListsTest, PublishedObjectsAreTheClusters) {
  ObjectLocation copy;
  copy.node = node_;
  copy.id = id_;
  copy.size = 500;
  publish("weights", std::vector{copy});
  publish("small", std::string("bytes"));
  publish("lost", std::vector{copy});
  context_.commit(command::Publish{{"space", "none"}, 1, std::vector<ObjectLocation>(), ""});
  const Answer answer = ask();
  reply(node_, {object(id_)});
  reply(other_, std::vector<ObjectInfo>());
  const ObjectList known = list(answer);
  ASSERT_EQ(known.objects.size(), 2u);
  EXPECT_EQ(known.objects[0].id, id_);
  EXPECT_EQ(known.objects[0].owner, "cluster");
  EXPECT_EQ(known.objects[0].size, 500u);
  EXPECT_EQ(known.objects[0].published,
            (std::vector<std::string>{"space/lost@3", "space/weights@3"}));
  EXPECT_EQ(known.objects[1].place, ObjectPlace::kHead) << "those without an id come last";
  EXPECT_EQ(known.objects[1].size, 5u);
  EXPECT_EQ(known.objects[1].published, std::vector<std::string>{"space/small@3"});
}

TEST_F(ObjectListsTest, ProcessesHaveTheNamesOfTheirActors) {
  const JobId job = add_job(node_);
  const ActorSpec actor = add_living(job);
  ASSERT_EQ(record(actor).address.pid, 100);
  const NodeId at = record(actor).node;
  ObjectInfo of_actor = owned(id_, 100);
  of_actor.owner_node = at;
  of_actor.borrowers.push_back({at, 100, 1, "worker"});
  of_actor.borrowers.push_back({at, 101, 1, "driver"});
  Answer answer = ask();
  reply(node_, {of_actor});
  reply(other_, std::vector<ObjectInfo>());
  const std::string name = "Counter " + actor.actor.short_hex();
  ObjectInfo known = list(answer).objects.at(0);
  EXPECT_EQ(known.owner, name);
  EXPECT_EQ(known.borrowers.at(0).name, name);
  EXPECT_EQ(known.borrowers.at(1).name, "driver");

  const ActorSpec second = add_living(job);  // a shared one in the same process
  ASSERT_EQ(record(second).node, at);
  answer = ask();
  reply(node_, {of_actor});
  reply(other_, std::vector<ObjectInfo>());
  EXPECT_EQ(list(answer).objects.at(0).owner, "several actors");
  context_.commit(command::ActorDead{second.actor, {}});
  answer = ask();
  reply(node_, {of_actor});
  reply(other_, std::vector<ObjectInfo>());
  EXPECT_EQ(list(answer).objects.at(0).owner, name) << "the dead have no process";
}

}  // namespace
}  // namespace runtime
