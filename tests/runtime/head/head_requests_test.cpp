// Requests that come again: to a head that was killed before its answer arrived, and to the same
// one over another connection.
#include "runtime/control/request_ids.h"
#include "tests/runtime/head/head_fixture.h"

namespace runtime {
namespace {

using std::chrono::seconds;

class HeadRequests : public HeadTest {
 protected:
  Answer ask_as(RequestId id, ControlRequest::Body body, NodeId from = {}) {
    return ask(std::move(body), {}, from, seconds(10), id);
  }
  void next_head(std::vector<control::ActorInstance> actors = {}) {
    restart_head();
    EXPECT_TRUE(return_node(node_, std::move(actors), {job_}).ok());
    reserved();
  }
  static control::Publish version(std::uint64_t number) {
    control::Publish publish;
    publish.name = "weights";
    publish.version = number;
    publish.value = "bytes";
    return publish;
  }
  GroupId placed_group() {
    control::CreateGroup create;
    create.spec.group = GroupId::random();
    create.spec.bundles = {{{"CPU", 1}}};
    EXPECT_FALSE(ask(create)->has_value());
    EXPECT_GT(reserved(), 0);
    return create.spec.group;
  }
  static std::int64_t number(const Answer& answer) {
    EXPECT_TRUE(answer->has_value() && (*answer)->ok());
    return answer->has_value() && (*answer)->ok() ? std::get<std::int64_t>(***answer) : -1;
  }

  const RequestId id_ = RequestId::random();
};

TEST_F(HeadRequests, AnAdditionHappensOnce) {
  EXPECT_EQ(number(ask_as(id_, control::KvAdd{"sum", 5})), 5);
  EXPECT_EQ(number(ask_as(id_, control::KvAdd{"sum", 5})), 5);
  next_head();
  EXPECT_EQ(number(ask_as(id_, control::KvAdd{"sum", 5})), 5);
  EXPECT_EQ(number(ask_as(RequestId::random(), control::KvAdd{"sum", 1})), 6);
}

TEST_F(HeadRequests, ADeletionIsWonByWhoMadeItFirst) {
  ask(control::KvPut{"claim", "free"});
  EXPECT_EQ(number(ask_as(id_, control::KvDelete{"claim"})), 1);
  next_head();
  EXPECT_EQ(number(ask_as(RequestId::random(), control::KvDelete{"claim"})), 0);
  EXPECT_EQ(number(ask_as(id_, control::KvDelete{"claim"})), 1);
}

TEST_F(HeadRequests, AnOldValueDoesNotComeBack) {
  EXPECT_TRUE(status(ask_as(id_, control::KvPut{"key", "old"})).ok());
  next_head();
  EXPECT_TRUE(status(ask_as(RequestId::random(), control::KvPut{"key", "new"})).ok());
  EXPECT_TRUE(status(ask_as(id_, control::KvPut{"key", "old"})).ok());
  EXPECT_EQ(*head().tables().pairs().find(job_, "key"), "new");
}

TEST_F(HeadRequests, ARefusalStaysOne) {
  EXPECT_EQ(status(ask_as(id_, control::RemoveGroup{GroupId()})).code(), ErrorCode::kNotFound);
  ask(control::KvPut{"text", "none"});
  const RequestId sum = RequestId::random();
  const Status refused = status(ask_as(sum, control::KvAdd{"text", 1}));
  EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument);
  ask(control::KvPut{"text", "1"});
  next_head();
  EXPECT_EQ(status(ask_as(sum, control::KvAdd{"text", 1})), refused);
  EXPECT_EQ(status(ask_as(id_, control::RemoveGroup{GroupId()})).code(), ErrorCode::kNotFound);
}

TEST_F(HeadRequests, APublishedVersionIsItsOwn) {
  EXPECT_TRUE(status(ask_as(id_, ObjectControl{version(3)})).ok());
  next_head();
  EXPECT_TRUE(status(ask_as(id_, ObjectControl{version(3)})).ok());
  EXPECT_EQ(status(ask_as(RequestId::random(), ObjectControl{version(3)})).code(),
            ErrorCode::kInvalidArgument)
      << "another one's";
  EXPECT_TRUE(status(ask_as(RequestId::random(), ObjectControl{version(4)})).ok());
  EXPECT_TRUE(status(ask_as(id_, ObjectControl{version(3)})).ok()) << "as it was then";
}

TEST_F(HeadRequests, AVersionThatIsBeingPublishedWaitsForItsNodes) {
  control::Publish stored = version(7);
  ObjectLocation location;
  location.node = node_;
  stored.value = std::vector<ObjectLocation>{location};
  Answer first = ask_as(id_, ObjectControl{stored});
  EXPECT_FALSE(first->has_value());
  Answer again = ask_as(id_, ObjectControl{stored});
  EXPECT_FALSE(again->has_value());
  auto adopt = links_.take<ObjectControl>();
  ASSERT_TRUE(adopt);
  adopt->answer(ControlAnswer{ObjectControlAnswer{location}});
  EXPECT_TRUE(status(first).ok());
  EXPECT_TRUE(status(again).ok());
  EXPECT_FALSE(links_.take<ObjectControl>()) << "asked twice";
  EXPECT_TRUE(
      status(ask_as(RequestId::random(), ObjectControl{control::Unpublish{"", "weights", 7}}))
          .ok());
}

TEST_F(HeadRequests, WhatWasUnpublishedWas) {
  ask(ObjectControl{version(1)});
  EXPECT_TRUE(status(ask_as(id_, ObjectControl{control::Unpublish{"", "weights", 1}})).ok());
  next_head();
  EXPECT_TRUE(status(ask_as(id_, ObjectControl{control::Unpublish{"", "weights", 1}})).ok());
}

TEST_F(HeadRequests, AGroupThatWasRemovedWas) {
  const GroupId group = placed_group();
  EXPECT_TRUE(status(ask_as(id_, control::RemoveGroup{group})).ok());
  next_head();
  EXPECT_TRUE(status(ask_as(id_, control::RemoveGroup{group})).ok());
  EXPECT_EQ(status(ask_as(RequestId::random(), control::RemoveGroup{group})).code(),
            ErrorCode::kNotFound);
}

TEST_F(HeadRequests, AGroupThatAnotherHasRemovedIsNotMadeAgain) {
  control::CreateGroup create;
  create.spec.group = GroupId::random();
  create.spec.bundles = {{{"CPU", 100}}};
  EXPECT_FALSE(ask_as(id_, create)->has_value());
  next_head();
  EXPECT_TRUE(status(ask(control::RemoveGroup{create.spec.group})).ok());
  EXPECT_EQ(status(ask_as(id_, create)).code(), ErrorCode::kCancelled);
  EXPECT_TRUE(head().tables().groups().all().empty());
}

TEST_F(HeadRequests, AGroupThatIsBeingPlacedIsWaitedFor) {
  control::CreateGroup create;
  create.spec.group = GroupId::random();
  create.spec.bundles = {{{"CPU", 1}}};
  ask_as(id_, create);
  next_head();
  Answer again = ask_as(id_, create);
  reserved();
  ASSERT_TRUE(again->has_value() && (*again)->ok());
  EXPECT_TRUE(std::get<GroupState>(***again).placed);
  next_head();
  Answer third = ask_as(id_, create);
  ASSERT_TRUE(third->has_value() && (*third)->ok());
}

TEST_F(HeadRequests, ARestartHappensOnce) {
  ActorSpec spec = actor();
  spec.max_restarts = 5;
  living(spec);
  for (const bool by_kill : {false, true}) {
    const RequestId id = RequestId::random();
    const ControlRequest::Body body =
        by_kill ? ControlRequest::Body(control::KillActor{spec.actor, true})
                : ControlRequest::Body(control::TerminateActor{spec.actor, true});
    ask_as(id, body);
    ASSERT_TRUE(links_.take<control::StopActor>());
    const std::uint64_t before = incarnation(spec);
    // Its process ends while there is no head, and its next one begins before the request comes
    // again.
    next_head();
    EXPECT_TRUE(started());
    ASSERT_GT(incarnation(spec), before);
    EXPECT_TRUE(status(ask_as(id, body)).ok());
    EXPECT_FALSE(links_.take<control::StopActor>());
  }
  EXPECT_EQ(record(spec).restarts, 2u);
}

TEST_F(HeadRequests, ANodeThatHasLeftWasDrained) {
  const NodeId other = join(1);
  EXPECT_TRUE(status(ask_as(id_, control::DrainNode{other, seconds(60), "test", true})).ok());
  head().node_lost(other, "it was told to leave");
  next_head();
  EXPECT_TRUE(status(ask_as(id_, control::DrainNode{other, seconds(60), "test", true})).ok());
}

TEST_F(HeadRequests, ANodeWhoseFirstAnswerWasLostHasJoined) {
  const NodeId other = join(2);
  const NodeInfo info = *head().tables().nodes().find(other);
  restart_head();
  EXPECT_TRUE(status(ask(control::RegisterNode{info}, {}, other)).ok());
  EXPECT_EQ(head().tables().nodes().all().size(), 2u);
  EXPECT_TRUE(status(ask(control::RegisterNode{info}, {}, other)).ok()) << "by another connection";
}

TEST_F(HeadRequests, TheAnswerIsRecordedWithTheChange) {
  ask(control::KvPut{"another", "value"});
  ask(control::KvPut{"key", "value"});
  record_changes();
  head().handle(node_, ControlRequest{job_, seconds(1), control::KvDelete{"key"}, id_},
                [](Result<ControlAnswer>) {});
  const std::vector<JournalWrite> batch = head().changes();
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_EQ(batch[0].key, journal::key_of_pair(job_, "key"));
  EXPECT_TRUE(batch[1].key.starts_with("request/"));
  for (const JournalWrite& write : batch) {
    if (write.value)
      journal_[write.key] = *write.value;
    else
      journal_.erase(write.key);
  }
}

TEST_F(HeadRequests, WhatMayRunTwiceIsNotRemembered) {
  for (const ControlRequest::Body& body :
       {ControlRequest::Body(control::KvGet{"key"}), ControlRequest::Body(control::QueryCluster{}),
        ControlRequest::Body(control::KillActor{ActorId::random()})}) {
    EXPECT_FALSE(carries_id(body));
    ask_as(RequestId::random(), body);
  }
  EXPECT_TRUE(head().tables().requests().all().empty());
}

}  // namespace
}  // namespace runtime
