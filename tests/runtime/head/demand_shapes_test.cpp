// The demand of what waits, by shape, and its limits.
#include "runtime/head/demand_shapes.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

class DemandShapesTest : public ::testing::Test {
 protected:
  static ActorSpec actor(double cpus) {
    ActorSpec spec;
    spec.actor = ActorId::random();
    spec.class_name = "Counter";
    spec.resources = {{"CPU", cpus}};
    return spec;
  }
  static GroupSpec group(std::size_t bundles) {
    GroupSpec spec;
    spec.group = GroupId::random();
    spec.bundles.resize(bundles, {{"CPU", 1}});
    return spec;
  }

  Demand demand_;
  DemandShapes shapes_{demand_};
};

TEST_F(DemandShapesTest, ActorsThatAskForTheSameAreOneShape) {
  const ActorSpec first = actor(1);
  shapes_.add(first);
  shapes_.add(actor(2));
  shapes_.add(actor(1));
  ActorSpec labelled = actor(1);
  labelled.labels = {{"zone", "a"}};
  shapes_.add(labelled);
  ASSERT_EQ(demand_.actors.size(), 3u);
  EXPECT_EQ(demand_.actors[0].count, 2u);
  EXPECT_EQ(demand_.actors[0].example, "actor Counter " + first.actor.short_hex())
      << "the one that came first";
  EXPECT_EQ(demand_.actors[1].resources, (ResourceMap{{"CPU", 2}}));
  EXPECT_EQ(demand_.actors[2].labels, labelled.labels);
}

TEST_F(DemandShapesTest, JobsAreApartFromActors) {
  JobInfo job;
  job.job = JobId::random();
  GroupSpec place = group(1);
  shapes_.add(job, place);
  shapes_.add(actor(1));
  place.bundle_labels = {{{"zone", "a"}}};
  shapes_.add(job, place);
  ASSERT_EQ(demand_.jobs.size(), 2u);
  EXPECT_EQ(demand_.jobs[0].example, "job " + job.job.short_hex());
  EXPECT_EQ(demand_.jobs[0].resources, (ResourceMap{{"CPU", 1}}));
  EXPECT_EQ(demand_.jobs[1].labels, (Labels{{"zone", "a"}}));
  EXPECT_EQ(demand_.actors.at(0).count, 1u);
}

TEST_F(DemandShapesTest, GroupsAreAlikeWhateverTheirNames) {
  GroupSpec first = group(2), spread = group(2);
  first.name = "first";
  spread.strategy = GroupStrategy::kSpread;
  for (const GroupSpec& each : {first, spread, group(3), group(2), spread, group(3), group(2)})
    shapes_.add(each);
  ASSERT_EQ(demand_.groups.size(), 3u);
  EXPECT_EQ(demand_.groups[0].count, 3u);
  EXPECT_EQ(demand_.groups[0].spec.group, first.group);
  EXPECT_EQ(demand_.groups[0].spec.name, "first");
  EXPECT_EQ(demand_.groups[1].count, 2u);
  EXPECT_EQ(demand_.groups[1].spec.strategy, GroupStrategy::kSpread);
  EXPECT_EQ(demand_.groups[2].count, 2u);
}

TEST_F(DemandShapesTest, BeyondTheLimitShapesAreCountedButThoseInTheListGoOn) {
  for (std::size_t i = 0; i < Demand::kShapesMax + 2; ++i) {
    shapes_.add(actor(static_cast<double>(i)));
    GroupSpec one = group(1);
    one.bundles[0]["CPU"] = static_cast<double>(i);
    shapes_.add(one);
  }
  EXPECT_EQ(demand_.actors.size(), Demand::kShapesMax);
  EXPECT_EQ(demand_.groups.size(), Demand::kShapesMax);
  EXPECT_EQ(demand_.unlisted, 4u);
  shapes_.add(actor(7));
  shapes_.add(actor(static_cast<double>(Demand::kShapesMax)));
  EXPECT_EQ(demand_.actors[7].count, 2u);
  EXPECT_EQ(demand_.unlisted, 5u) << "one of a shape that was left out is left out, too";
}

TEST_F(DemandShapesTest, GroupsHaveALimitOfBundlesTogether) {
  shapes_.add(group(Demand::kBundlesMax - 1));
  shapes_.add(group(2));
  EXPECT_EQ(demand_.groups.size(), 1u);
  EXPECT_EQ(demand_.unlisted, 1u);
  shapes_.add(group(1));
  shapes_.add(group(Demand::kBundlesMax - 1));
  EXPECT_EQ(demand_.groups.size(), 2u) << "there was room for a smaller one";
  EXPECT_EQ(demand_.groups[0].count, 2u);
  EXPECT_EQ(demand_.unlisted, 1u);
}

}  // namespace
}  // namespace runtime
