// Requests about published objects.
#include "runtime/head/published_objects.h"

#include "parts_fixture.h"
#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using support::expect_failure;

class PublishedObjectsTest : public PartTest {
 protected:
  PublishedObjectsTest() : node_(add_node(1)), other_(add_node(1)), job_(add_job(node_)) {}

  template <class Body>
  Answer ask(Body body) {
    return PartTest::ask(published_, std::move(body), node_, job_);
  }
  static control::Publish version(std::uint64_t number, PublishedValue value = std::string("v")) {
    return {"team", "weights", number, 2, 1, std::move(value), "type"};
  }
  control::Publish stored(std::uint64_t number, std::uint32_t copies = 1) const {
    control::Publish body = version(number, std::vector{location(node_)});
    body.copies = copies;
    return body;
  }
  static ObjectLocation location(NodeId node) {
    ObjectLocation place;
    place.node = node;
    return place;
  }
  Status publish(control::Publish body) { return status(ask(std::move(body))); }
  Answer find(std::uint64_t number, bool exactly = false, bool wait = false) {
    return ask(control::FindPublished{"team", "weights", number, exactly, wait});
  }
  static std::uint64_t found(const Answer& answer) {
    EXPECT_TRUE(status(answer).ok()) << status(answer).message();
    if (!status(answer).ok()) return 0;
    return std::get<PublishedObject>(std::get<ObjectControlAnswer>(***answer)).version;
  }
  static bool waits(const Answer& answer) { return !answer->has_value(); }
  /// The next node that is asked to keep the object answers.
  NodeId adopt(const Status& refusal = {}) {
    auto sent = links_.take<ObjectControl>();
    if (!sent) {
      ADD_FAILURE() << "no node is asked";
      return {};
    }
    EXPECT_TRUE(
        std::holds_alternative<control::AdoptObject>(std::get<ObjectControl>(sent->request.body)));
    if (refusal.ok())
      sent->answer(ControlAnswer{ObjectControlAnswer{location(sent->node)}});
    else
      sent->answer(refusal);
    return sent->node;
  }
  /// The nodes that are told to drop what they keep.
  std::vector<NodeId> drops() {
    std::vector<NodeId> nodes;
    while (auto sent = links_.take<ObjectControl>()) {
      EXPECT_TRUE(
          std::holds_alternative<control::DropObject>(std::get<ObjectControl>(sent->request.body)));
      nodes.push_back(sent->node);
    }
    return nodes;
  }
  std::vector<std::uint64_t> versions() const {
    std::vector<std::uint64_t> numbers;
    if (const auto* there = tables_.published().find({"team", "weights"}))
      for (const auto& [number, value] : *there) numbers.push_back(number);
    return numbers;
  }

  const NodeId node_, other_;
  const JobId job_;
  PublishedObjects published_{context_};
};

TEST_F(PublishedObjectsTest, OnlyTheLastVersionsStay) {
  EXPECT_TRUE(publish(version(3)).ok());
  const Status old = publish(version(3));
  expect_failure(old, ErrorCode::kInvalidArgument, {"version 3", "'weights'", "team", "latest, 3"});
  EXPECT_TRUE(publish(version(5)).ok());
  EXPECT_TRUE(publish(version(9)).ok());
  EXPECT_EQ(versions(), (std::vector<std::uint64_t>{5, 9}));
}

TEST_F(PublishedObjectsTest, WhatCannotBeIsRefused) {
  control::Publish nameless = version(1), endless = version(1), none = version(1);
  nameless.name.clear();
  endless.type.assign(options_.key_bytes_max + 1, 'x');
  none.keep_last = 0;
  options_.value_bytes_max = 3;
  for (const control::Publish& bad : {nameless, endless, none, version(1, std::string("four")),
                                      version(1, std::vector<ObjectLocation>())})
    EXPECT_EQ(publish(bad).code(), ErrorCode::kInvalidArgument);
  const NodeId gone = NodeId::random();
  expect_failure(publish(version(1, std::vector{location(gone)})), ErrorCode::kObjectLost,
                 {gone.short_hex()});
  EXPECT_TRUE(publish(version(1, std::string("abc"))).ok());
}

TEST_F(PublishedObjectsTest, AStoredVersionIsThereOnceItsNodesKeepIt) {
  const Answer answer = ask(stored(4, 2));
  EXPECT_EQ(adopt(), node_) << "which has it";
  EXPECT_TRUE(waits(answer));
  EXPECT_TRUE(versions().empty());
  EXPECT_EQ(publish(version(4)).code(), ErrorCode::kInvalidArgument) << "it is on its way";
  EXPECT_EQ(adopt(), other_);
  EXPECT_TRUE(status(answer).ok());
  EXPECT_EQ(found(find(0)), 4u);
}

TEST_F(PublishedObjectsTest, ARefusalDropsWhatOtherNodesKeep) {
  const Answer answer = ask(stored(4, 2));
  EXPECT_EQ(adopt(), node_);
  adopt(resource_exhausted("the store is full"));
  expect_failure(status(answer), ErrorCode::kResourceExhausted, {"the store is full"});
  EXPECT_EQ(drops(), std::vector{node_});
  EXPECT_TRUE(versions().empty());
  EXPECT_TRUE(publish(version(4)).ok()) << "the number is free again";
}

TEST_F(PublishedObjectsTest, AVersionThatALargerOneOvertookIsRefused) {
  const Answer slow = ask(stored(4));
  EXPECT_TRUE(publish(version(5)).ok());
  adopt();
  EXPECT_EQ(status(slow).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(drops(), std::vector{node_});
  EXPECT_EQ(versions(), std::vector<std::uint64_t>{5});
}

TEST_F(PublishedObjectsTest, DrainedNodesGetNoCopies) {
  EXPECT_EQ(publish(stored(4, 3)).code(), ErrorCode::kResourceExhausted);
  context_.commit(command::NodeDrains{node_, {"preemption"}});
  expect_failure(publish(stored(4, 2)), ErrorCode::kResourceExhausted, {"drained"});
  const Answer answer = ask(stored(4));
  EXPECT_EQ(adopt(), other_) << "though the other has the object";
  EXPECT_TRUE(status(answer).ok());
}

TEST_F(PublishedObjectsTest, AnOldVersionThatIsDroppedIsDroppedByItsNodes) {
  ask(stored(1));
  adopt();
  EXPECT_TRUE(publish(version(2)).ok());
  EXPECT_TRUE(drops().empty());
  EXPECT_TRUE(publish(version(3)).ok());
  EXPECT_EQ(drops(), std::vector{node_});
}

TEST_F(PublishedObjectsTest, AQuestionIsAnsweredWithWhatIsThere) {
  EXPECT_EQ(status(find(0)).code(), ErrorCode::kNotFound);
  EXPECT_TRUE(publish(version(3)).ok());
  EXPECT_TRUE(publish(version(5)).ok());
  EXPECT_EQ(found(find(0)), 5u);
  EXPECT_EQ(found(find(4)), 5u);
  EXPECT_EQ(found(find(3, true)), 3u);
  expect_failure(status(find(4, true, true)), ErrorCode::kNotFound, {"3 to 5", "not 4"});
  expect_failure(status(find(6)), ErrorCode::kNotFound, {"not yet 6"});
}

TEST_F(PublishedObjectsTest, WhoWaitsIsAnsweredByTheFirstThatWillDo) {
  const Answer any = find(1, false, true), later = find(5, false, true),
               this_one = find(3, true, true);
  EXPECT_TRUE(publish(version(2)).ok());
  EXPECT_EQ(found(any), 2u);
  EXPECT_TRUE(waits(this_one));
  EXPECT_TRUE(publish(version(4)).ok());
  EXPECT_EQ(status(this_one).code(), ErrorCode::kNotFound) << "it will not come any more";
  EXPECT_TRUE(waits(later));
  const Deadline due = published_.next_tick();
  EXPECT_EQ(due, time_ + 10s);
  published_.tick(due);
  expect_failure(status(later), ErrorCode::kDeadlineExceeded, {"'weights'", "version 5"});
}

TEST_F(PublishedObjectsTest, ALostVersionSaysWhy) {
  ask(stored(1));
  adopt();
  context_.commit(command::RemoveNode{node_, "its lease is over"});
  expect_failure(status(find(0)), ErrorCode::kObjectLost, {"version 1", "its lease is over"});
}

TEST_F(PublishedObjectsTest, VersionsAreDroppedOneByOneOrAllTogether) {
  for (std::uint64_t number : {1, 2}) EXPECT_TRUE(publish(version(number)).ok());
  expect_failure(status(ask(control::Unpublish{"team", "weights", 7})), ErrorCode::kNotFound,
                 {"7"});
  EXPECT_TRUE(status(ask(control::Unpublish{"team", "weights", 1})).ok());
  EXPECT_EQ(versions(), std::vector<std::uint64_t>{2});
  EXPECT_TRUE(publish(version(3)).ok());
  EXPECT_TRUE(status(ask(control::Unpublish{"team", "weights", 0})).ok());
  EXPECT_TRUE(versions().empty());
  EXPECT_EQ(status(ask(control::Unpublish{"team", "weights", 0})).code(), ErrorCode::kNotFound);
}

TEST_F(PublishedObjectsTest, OnlyAnEndedJobsOwnNamesGoWithIt) {
  control::Publish own = version(1);
  own.name_space.clear();
  EXPECT_TRUE(publish(own).ok());
  EXPECT_TRUE(publish(version(1)).ok());
  published_.drop_private_names(job_);
  EXPECT_EQ(tables_.published().all().size(), 2u) << "it runs";
  context_.commit(command::EndJob{job_, JobOutcome::kSucceeded});
  published_.drop_private_names(job_);
  EXPECT_EQ(tables_.published().all().size(), 1u);
  EXPECT_EQ(versions(), std::vector<std::uint64_t>{1});
}

}  // namespace
}  // namespace runtime
