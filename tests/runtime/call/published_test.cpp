#include "runtime/call/published.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/call/lineage.h"
#include "tests/runtime/call/query_fixture.h"
#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using support::expect_failure;

class PublishedTest : public test::QueryTest {
 protected:
  using Found = published_detail::Found;

  std::future<Result<Found>> find(const PublishedQuery& query = {},
                                  std::type_index type = typeid(int)) {
    auto promise = std::make_shared<std::promise<Result<Found>>>();
    published_detail::find(
        queries_, "weights", type, query, deadline_after(20s),
        [promise](Result<Found> found) { promise->set_value(std::move(found)); });
    return promise->get_future();
  }
  Result<control::Publish> request(const ObjectStatePtr& object,
                                   Deadline deadline = deadline_after(20s)) const {
    return published_detail::publish_request("weights", 7, object, typeid(int),
                                             {.name_space = "team", .keep_last = 3, .copies = 2},
                                             deadline);
  }
  ObjectStatePtr stored(const ObjectLocation& location) {
    ObjectValue value;
    value.stored = objects_.references.borrow(location, false);
    return ObjectState::ready(objects_.get(), std::move(value));
  }
  static PublishedObject version(std::uint64_t number, PublishedValue value,
                                 std::string type = typeid(int).name()) {
    return {"weights", number, std::move(value), std::move(type)};
  }
  static ObjectLocation copy_on(NodeId node) {
    ObjectLocation location = test::some_location();
    location.node = node;
    return location;
  }
  std::vector<ObjectLocation> tried() {
    return on_loop(loop_, [&] { return objects_.references.asked; });
  }
  /// Where the version that was found is.
  static NodeId node_of(const Result<Found>& found) {
    EXPECT_TRUE(found.ok()) << found.status().to_string();
    return found.ok() ? found->object->value().stored->location().node : NodeId();
  }
};

TEST_F(PublishedTest, SmallValuesGoToTheHeadAndStoredOnesStayWhereTheyAre) {
  const ObjectStatePtr small = ObjectState::ready(objects_.get(), test::small_value(5));
  const std::string bytes(small->value().bytes.text());
  const std::string type = typeid(int).name();
  EXPECT_EQ(request(small).value_or({}),
            (control::Publish{"team", "weights", 7, 3, 2, bytes, type}));
  const ObjectLocation place = test::some_location();
  EXPECT_EQ(request(stored(place)).value_or({}),
            (control::Publish{"team", "weights", 7, 3, 2, std::vector{place}, type}));
}

TEST_F(PublishedTest, WhatCannotBePublishedIsNotAskedFor) {
  expect_failure(request(nullptr).status(), ErrorCode::kInvalidArgument, {"refers to nothing"});
  const auto pending = std::make_shared<ObjectState>(objects_.get());
  expect_failure(request(pending, Deadline()).status(), ErrorCode::kDeadlineExceeded,
                 {"'weights'"});
  expect_failure(request(ObjectState::failed(objects_.get(), task_failed("threw: no"))).status(),
                 ErrorCode::kTaskFailed, {"'weights'", "threw: no"});
  ObjectValue value = test::small_value(1);
  value.refs = {pending};
  expect_failure(request(ObjectState::ready(objects_.get(), std::move(value))).status(),
                 ErrorCode::kInvalidArgument, {"'weights'", "references"});
}

TEST_F(PublishedTest, OnlyAVersionThatIsNamedIsWaitedFor) {
  const std::vector<std::pair<PublishedQuery, control::FindPublished>> questions = {
      {{}, {"", "weights", 0, false, false}},
      {{.at_least = 3, .name_space = "team"}, {"team", "weights", 3, false, true}},
      {{.exactly = 4}, {"", "weights", 4, true, true}}};
  for (const auto& [query, question] : questions) {
    auto found = find(query);
    EXPECT_EQ(answer_version(version(4, std::string("\5\0\0\0", 4))), question);
    const Result<Found> got = found.get();
    ASSERT_TRUE(got.ok()) << got.status().to_string();
    EXPECT_EQ(got->version, 4u);
    EXPECT_EQ(fetch<int>(*got->object, Deadline::max()).value_or(0), 5);
  }
}

TEST_F(PublishedTest, AnotherTypeIsRefusedUnlessNoneWasSaid) {
  auto found = find({}, typeid(double));
  answer_version(version(4, std::string("bytes")));
  expect_failure(found.get().status(), ErrorCode::kInvalidArgument,
                 {"version 4", "'weights'", "as int", "as double"});
  found = find({}, typeid(double));
  answer_version(version(4, std::string("bytes"), ""));
  EXPECT_TRUE(found.get().ok());
}

TEST_F(PublishedTest, TheCopyOnThisNodeComesFirstAndOthersInItsPlaceWhenItIsLost) {
  const std::vector copies{copy_on(NodeId::random()), copy_on(node_->node_id()),
                           copy_on(NodeId::random())};
  auto found = find();
  answer_version(version(4, copies));
  EXPECT_EQ(node_of(found.get()), node_->node_id());
  EXPECT_EQ(tried().size(), 1u);
  run_on(loop_, [&] { objects_.references.gone = {node_->node_id()}; });
  found = find();
  answer_version(version(4, copies));
  EXPECT_NE(node_of(found.get()), node_->node_id());
  EXPECT_EQ(tried().size(), 3u);
}

TEST_F(PublishedTest, TheHeadIsAskedAgainWhenNoCopyIsLeft) {
  const ObjectLocation lost = copy_on(NodeId::random()), next = copy_on(NodeId::random());
  objects_.references.gone = {lost.node};
  auto found = find();
  answer_version(version(4, std::vector{lost}));
  answer_version(version(5, std::vector{next}));
  const Result<Found> got = found.get();
  EXPECT_EQ(node_of(got), next.node);
  EXPECT_EQ(got->version, 5u);
  EXPECT_TRUE(object_table_.find_remakeable(next.id)) << "others ask this process when it is lost";
}

TEST_F(PublishedTest, WhatWasFoundIsFoundAgainInThatVersionAlone) {
  const ObjectLocation first = copy_on(NodeId::random()), second = copy_on(NodeId::random());
  auto found = find({.at_least = 1});
  answer_version(version(4, std::vector{first}));
  const Result<Found> got = found.get();
  ASSERT_EQ(node_of(got), first.node);
  const std::shared_ptr<Lineage> lineage = got->object->value().stored->lineage();
  EXPECT_EQ(lineage->maker(), "publish('weights', version 4)");
  EXPECT_EQ(lineage->keeper(), node_->node_address());
  const Result<ObjectStatePtr> again = lineage->make_again(first);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(answer_version(version(4, std::vector{second})),
            (control::FindPublished{"", "weights", 4, true, false}));
  ASSERT_TRUE((*again)->wait(deadline_after(20s)));
  EXPECT_EQ((*again)->value().stored->location(), second);
}

}  // namespace
}  // namespace runtime
