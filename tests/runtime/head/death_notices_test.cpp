// Notices of the deaths of actors, from the head to its nodes.
#include "runtime/head/death_notices.h"

#include <optional>

#include "parts_fixture.h"

namespace runtime {
namespace {

class DeathNoticesTest : public PartTest {
 protected:
  DeathNoticesTest() : node_(add_node(1)), other_(add_node(1)), job_(add_job(node_)) {}

  ActorId announce(JobId job) {
    const ActorSpec spec = add_actor(job);
    notices_.announce(record(spec));
    return spec.actor;
  }
  const control::ActorsDied& news(std::size_t at) const {
    return std::get<control::ActorsDied>(links_.events.at(at).second);
  }

  using Actors = std::vector<ActorId>;
  const NodeId node_, other_;
  const JobId job_;
  DeathNotices notices_{context_};
};

TEST_F(DeathNoticesTest, EveryNodeHearsOfADeathAtOnce) {
  const ActorId dead = announce(job_);
  ASSERT_EQ(links_.events.size(), 2u);
  EXPECT_NE(links_.events[0].first, links_.events[1].first);
  for (std::size_t at = 0; at < 2; ++at) {
    EXPECT_EQ(news(at).job, job_);
    EXPECT_EQ(news(at).actors, Actors{dead});
  }
}

TEST_F(DeathNoticesTest, DeathsTogetherAreOneEventForEachJob) {
  const JobId another = add_job(node_);
  Actors dead, others;
  {
    const DeathNotices::Together together(notices_);
    dead.push_back(announce(job_));
    others.push_back(announce(another));
    dead.push_back(announce(job_));
    EXPECT_TRUE(links_.events.empty());
  }
  ASSERT_EQ(links_.events.size(), 4u);
  for (std::size_t at = 0; at < 4; ++at)
    EXPECT_EQ(news(at).actors, news(at).job == job_ ? dead : others);
  links_.events.clear();
  announce(job_);
  EXPECT_EQ(links_.events.size(), 2u) << "the next one is alone again";
}

TEST_F(DeathNoticesTest, AnInnerGatheringEndsByItself) {
  std::optional<DeathNotices::Together> outer(std::in_place, notices_);
  const ActorId first = announce(job_);
  ActorId second;
  {
    const DeathNotices::Together inner(notices_);
    second = announce(job_);
  }
  ASSERT_EQ(links_.events.size(), 2u);
  EXPECT_EQ(news(0).actors, Actors{second});
  const ActorId third = announce(job_);
  EXPECT_EQ(links_.events.size(), 2u);
  outer.reset();
  ASSERT_EQ(links_.events.size(), 4u);
  EXPECT_EQ(news(2).actors, (Actors{first, third}));
}

TEST_F(DeathNoticesTest, WhereNothingDiesNothingIsSaid) {
  { const DeathNotices::Together together(notices_); }
  EXPECT_TRUE(links_.events.empty());
}

}  // namespace
}  // namespace runtime
