// Jobs that wait for reserved places.
#include "runtime/head/job_place.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

class JobPlaceTest : public PartTest {
 protected:
  JobPlaceTest() : node_(add_node(4)) {}

  /// A submitted job that waits for a place of that group.
  JobInfo submit(GroupId place) {
    JobInfo info;
    info.job = JobId::random();
    info.node = NodeId::random();
    info.place = place;
    context_.commit(command::StartJob{info, {}});
    return info;
  }
  GroupId add_place(JobId job, bool placed = true) {
    return placed ? add_placed_group(job, 1).group : add_group(job, 1).group;
  }

  const NodeId node_;
};

TEST_F(JobPlaceTest, AGroupIsThePlaceOfTheJobThatSaysSo) {
  const JobInfo job = submit(GroupId::random());
  GroupState place, other;
  place.job = other.job = job.job;
  place.spec.group = job.place;
  other.spec.group = GroupId::random();
  ASSERT_TRUE(job_in(tables_, place));
  EXPECT_EQ(job_in(tables_, place)->info.job, job.job);
  EXPECT_EQ(job_in(tables_, other), nullptr) << "one that its program has made";
  place.job = JobId::random();
  EXPECT_EQ(job_in(tables_, place), nullptr);
}

TEST_F(JobPlaceTest, AJobThatWaitsHasItsPlaceOnceItsGroupHas) {
  JobInfo job = submit({});
  const GroupId waiting = add_place(job.job, false);
  job.place = waiting;
  EXPECT_FALSE(has_place_on(tables_, job, waiting, node_)) << "the group waits";
  const GroupId placed = add_place(job.job);
  EXPECT_FALSE(has_place_on(tables_, job, placed, node_)) << "it is not the job's place";
  job.place = placed;
  EXPECT_TRUE(has_place_on(tables_, job, placed, node_));
  EXPECT_FALSE(has_place_on(tables_, job, placed, add_node(4)));
  job.pid = 7;
  EXPECT_FALSE(has_place_on(tables_, job, placed, node_)) << "it runs elsewhere";
}

TEST_F(JobPlaceTest, NoPlaceIsNone) {
  const JobInfo job = submit({});
  EXPECT_FALSE(has_place_on(tables_, job, {}, node_));
  JobInfo other = submit({});
  other.place = add_place(job.job);
  EXPECT_FALSE(has_place_on(tables_, other, other.place, node_)) << "another job's group";
}

}  // namespace
}  // namespace runtime
