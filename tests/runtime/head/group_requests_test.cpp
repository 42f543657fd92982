// Requests of clients about placement groups. The manager reserves for them; the test plays its
// nodes.
#include "runtime/head/group_requests.h"

#include "parts_fixture.h"
#include "queue_hooks.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class GroupRequestsTest : public PartTest {
 protected:
  GroupRequestsTest() : node_(add_node(2)), job_(add_job(node_)) {}

  static GroupSpec gang(std::size_t bundles = 1, const std::string& name = "") {
    GroupSpec spec;
    spec.group = GroupId::random();
    spec.name = name;
    spec.bundles.resize(bundles, {{"CPU", 1}});
    return spec;
  }
  template <class Body>
  Answer ask(Body body, JobId job = {}, std::chrono::milliseconds timeout = 10s) {
    return PartTest::ask(requests_, std::move(body), node_, job.is_none() ? job_ : job, timeout);
  }
  Answer create(const GroupSpec& spec, JobId job = {}) {
    return ask(control::CreateGroup{spec}, job);
  }
  Status refusal(const GroupSpec& spec, JobId job = {}) { return status(create(spec, job)); }
  static control::QueryGroup named(const std::string& name, bool wait = false) {
    return {{}, name, "", wait};
  }
  /// The nodes hold what they are asked to.
  void hold() {
    while (auto sent = links_.take<control::Reserve>())
      sent->answer(ControlAnswer{control::Refusals{}});
  }
  GroupSpec placed(const GroupSpec& spec) {
    const Answer created = create(spec);
    hold();
    EXPECT_TRUE(status(created).ok()) << status(created).message();
    return spec;
  }
  static GroupState said(const Answer& answer) {
    EXPECT_TRUE(status(answer).ok()) << status(answer).message();
    return status(answer).ok() ? std::get<GroupState>(***answer) : GroupState();
  }
  static bool waits(const Answer& answer) { return !answer->has_value(); }

  const NodeId node_;
  const JobId job_;
  FakeActors actors_{context_};
  PlacementQueue queue_{context_, hooks_of(groups_)};
  RequestLedger ledger_{context_};
  GroupManager groups_{context_, queue_, actors_, [this](GroupId group, const Status& status) {
                         requests_.decided(group, status);
                       }};
  GroupRequests requests_{context_, ledger_, queue_, groups_};
};

TEST_F(GroupRequestsTest, ACreationIsAnsweredOnceTheGroupIsPlaced) {
  const GroupSpec spec = gang(2);
  const Answer answer = create(spec);
  EXPECT_TRUE(waits(answer));
  hold();
  EXPECT_EQ(said(answer).spec.group, spec.group);
  EXPECT_EQ(said(answer).nodes, (std::vector<NodeId>{node_, node_}));
  EXPECT_TRUE(said(create(spec)).placed) << "the same request again";
}

TEST_F(GroupRequestsTest, ACreationThatComesAgainJoinsTheFirst) {
  const GroupSpec large = gang(5);
  const Answer first = create(large);
  const Answer again = ask(control::CreateGroup{large}, {}, 20s);
  time_ += 10s;
  queue_.tick(time_);
  EXPECT_TRUE(waits(again)) << "who asked again waits for longer";
  requests_.tick(time_ + 1s);
  EXPECT_EQ(status(first).code(), ErrorCode::kDeadlineExceeded);
  EXPECT_NE(status(first).message().find("no room for the group"), std::string::npos)
      << status(first).message();
  time_ += 10s;
  queue_.tick(time_);
  EXPECT_EQ(status(again).code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(tables_.groups().find(large.group), nullptr);
  EXPECT_EQ(requests_.next_tick(), Deadline::max());
}

TEST_F(GroupRequestsTest, OneThatHadBegunAndIsGoneIsNotMadeAgain) {
  const HeadCall call{node_, job_, time_ + 10s, RequestId::random(), true, 0};
  control::CreateGroup body{gang()};
  Status said = internal_error("no answer");
  requests_.serve(call, body, [&](Result<ControlAnswer> answer) { said = answer.status(); });
  EXPECT_EQ(said.code(), ErrorCode::kCancelled);
  EXPECT_TRUE(tables_.groups().all().empty());
}

TEST_F(GroupRequestsTest, WhatBeginsIsNotedWithItsId) {
  const HeadCall call{node_, job_, time_ + 10s, RequestId::random()};
  control::CreateGroup body{gang()};
  requests_.serve(call, body, [](const Result<ControlAnswer>&) {});
  EXPECT_TRUE(ledger_.knows(call.id));
}

TEST_F(GroupRequestsTest, WhatCannotBeIsRefused) {
  GroupSpec without_id = gang();
  without_id.group = {};
  EXPECT_EQ(refusal(without_id).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal(gang(), JobId::random()).code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(waits(create(gang(1, std::string(1024, 'x')))));
  EXPECT_EQ(refusal(gang(1, std::string(1025, 'x'))).code(), ErrorCode::kInvalidArgument);
  GroupSpec detached = gang();
  detached.detached = true;
  EXPECT_EQ(refusal(detached).code(), ErrorCode::kInvalidArgument) << "without a name";
  detached.name = "gang";
  EXPECT_EQ(refusal(detached).code(), ErrorCode::kInvalidArgument) << "in the job's own namespace";
  detached.name_space = "space";
  EXPECT_TRUE(waits(create(detached)));
}

TEST_F(GroupRequestsTest, AJobThatHasEndedReservesNothing) {
  context_.commit(command::EndJob{job_, JobOutcome::kFailed});
  EXPECT_EQ(refusal(gang()).code(), ErrorCode::kInvalidArgument);
}

TEST_F(GroupRequestsTest, AnActorThatOutlivesItsJobMayReserveWhatDoesToo) {
  ActorSpec outliving;
  outliving.actor = ActorId::random();
  outliving.class_name = "Counter";
  outliving.outlives_job = true;
  add_actor(job_, outliving);
  context_.commit(command::EndJob{job_, JobOutcome::kFailed});
  EXPECT_EQ(refusal(gang()).code(), ErrorCode::kInvalidArgument);
  GroupSpec detached = gang(1, "gang");
  detached.detached = true;
  detached.name_space = "space";
  EXPECT_TRUE(waits(create(detached)));
}

TEST_F(GroupRequestsTest, TheNumberThatWaitForAPlaceIsLimited) {
  options_.pending_max = 1;
  create(gang(5));
  EXPECT_EQ(refusal(gang(5)).code(), ErrorCode::kResourceExhausted);
}

TEST_F(GroupRequestsTest, ANameIsUniqueInItsNamespace) {
  const GroupSpec first = gang(1, "gang");
  create(first);
  EXPECT_EQ(tables_.groups().find(first.group)->spec.name_space, tables_.jobs().name_space(job_));
  const Status taken = refusal(gang(1, "gang"));
  EXPECT_EQ(taken.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(taken.message().find(first.group.short_hex()), std::string::npos) << taken.message();
  EXPECT_TRUE(waits(create(gang(1, "gang"), add_job(node_)))) << "another job's namespace";
  EXPECT_TRUE(waits(create(gang(5)))) << "those without a name have none in common";
  EXPECT_TRUE(waits(create(gang(5))));
}

TEST_F(GroupRequestsTest, AGroupIsFoundByIdOrByName) {
  const GroupSpec spec = placed(gang(1, "gang"));
  EXPECT_EQ(said(ask(named("gang"))).spec.group, spec.group);
  EXPECT_EQ(said(ask(control::QueryGroup{spec.group, "", "", false})).spec.name, "gang");
  EXPECT_EQ(status(ask(named("gang"), add_job(node_))).code(), ErrorCode::kNotFound);
  const Status unknown = status(ask(named("gan")));
  EXPECT_EQ(unknown.code(), ErrorCode::kNotFound);
  EXPECT_NE(unknown.message().find("'gang'"), std::string::npos)
      << "the nearest name: " << unknown.message();
  EXPECT_EQ(status(ask(control::QueryGroup{GroupId::random(), "", "", false})).code(),
            ErrorCode::kNotFound);
}

TEST_F(GroupRequestsTest, AQuestionMayWaitForThePlace) {
  const GroupSpec spec = gang(2, "gang");
  create(spec);
  EXPECT_FALSE(said(ask(named("gang"))).placed) << "at once, as it is";
  const Answer answer = ask(named("gang", true));
  EXPECT_TRUE(waits(answer));
  hold();
  EXPECT_TRUE(said(answer).placed);
  EXPECT_TRUE(said(ask(named("gang", true))).placed);
}

TEST_F(GroupRequestsTest, AQuestionThatWaitsEndsAtItsDeadline) {
  create(gang(5, "gang"));
  const Answer answer = ask(named("gang", true), {}, 2s);
  EXPECT_EQ(requests_.next_tick(), time_ + 2s);
  requests_.tick(time_ + 2s);
  EXPECT_EQ(status(answer).code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(tables_.groups().all().size(), 1u) << "the group waits on";
}

TEST_F(GroupRequestsTest, ARemovalGivesTheRoomToOthers) {
  const GroupSpec first = placed(gang(2));
  const Answer second = create(gang(2));
  EXPECT_TRUE(waits(second));
  EXPECT_TRUE(status(ask(control::RemoveGroup{first.group})).ok());
  hold();
  EXPECT_TRUE(said(second).placed);
  EXPECT_EQ(status(ask(control::RemoveGroup{first.group})).code(), ErrorCode::kNotFound);
}

TEST_F(GroupRequestsTest, WaitersForARemovedGroupAreAnswered) {
  const GroupSpec spec = gang(5, "gang");
  const Answer created = create(spec), asked = ask(named("gang", true));
  EXPECT_TRUE(status(ask(control::RemoveGroup{spec.group})).ok());
  EXPECT_EQ(status(created).code(), ErrorCode::kCancelled);
  EXPECT_EQ(status(asked).message(), "placement group 'gang' was removed");
  EXPECT_EQ(status(ask(control::RemoveGroup{spec.group})).code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace runtime
