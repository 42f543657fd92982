#include "runtime/api/placement_groups.h"

#include "runtime/call/get.h"
#include "tests/runtime/api/api_fixture.h"
#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using support::expect_failure;

class PlacementGroupApiTest : public test::ApiTest {
 protected:
  static GroupSpec spec() {
    GroupSpec made;
    made.name = "gang";
    made.bundles.resize(2, {{"CPU", 1}});
    return made;
  }

  PlacementGroupApi groups_{connection_};
};

TEST_F(PlacementGroupApiTest, AGroupHasItsIdBeforeItHasItsPlace) {
  GroupState placed;
  placed.placed = true;
  placed.nodes = {NodeId::random(), NodeId::random()};
  set_answer(ControlAnswer{placed});
  const PendingGroup pending = groups_.create(spec());
  EXPECT_FALSE(pending.id().is_none());
  const Result<GroupState> state = pending.get();
  ASSERT_TRUE(state.ok()) << state.status().to_string();
  EXPECT_EQ(state->nodes, placed.nodes);
  EXPECT_EQ(asked<control::CreateGroup>().spec.group, pending.id());
  EXPECT_EQ(asked<control::CreateGroup>().spec.name, "gang");
}

TEST_F(PlacementGroupApiTest, WhyItHasNoPlaceIsToldByGet) {
  set_answer(resource_exhausted("no node has CPU 1"));
  expect_failure(groups_.create(spec()).get().status(), ErrorCode::kResourceExhausted,
                 {"no node has CPU 1"});
  const Connection none;
  EXPECT_EQ(PlacementGroupApi(none).create(spec()).get().status().code(), ErrorCode::kUnavailable);
}

TEST_F(PlacementGroupApiTest, AWaitIsForAGroupThatIsNamedByItsId) {
  expect_failure(groups_.wait({}).status(), ErrorCode::kInvalidArgument, {"none"});
  EXPECT_EQ(requests(), 0u);
  set_answer(ControlAnswer{GroupState{}});
  const GroupId group = GroupId::random();
  EXPECT_TRUE(groups_.wait(group).ok());
  EXPECT_EQ(asked<control::QueryGroup>(), (control::QueryGroup{group, "", "", true}));
  EXPECT_TRUE(groups_.find("gang", "team").ok());
  EXPECT_EQ(asked<control::QueryGroup>(), (control::QueryGroup{{}, "gang", "team", false}));
}

TEST_F(PlacementGroupApiTest, ARemovalSettlesWithWhetherThereWasOne) {
  const GroupId group = GroupId::random();
  EXPECT_TRUE(get_value(groups_.remove(group), Deadline::max()).ok());
  EXPECT_EQ(asked<control::RemoveGroup>().group, group);
  set_answer(not_found("there is no such group"));
  EXPECT_EQ(get_value(groups_.remove(group), Deadline::max()).code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace runtime
