#include "runtime/head/actor_pages.h"

#include <set>

#include "parts_fixture.h"
#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using support::expect_failure;

class ActorPagesTest : public PartTest {
 protected:
  using Filters = std::vector<std::pair<std::string, std::string>>;
  using Ids = std::set<ActorId>;

  ActorPagesTest() : node_(add_node(4)), job_(add_job(node_)) {}

  ActorSpec add_named(const std::string& name, const std::string& class_name) {
    ActorSpec spec;
    spec.actor = ActorId::random();
    spec.class_name = class_name;
    spec.name = name;
    spec.name_space = "team";
    return add_actor(job_, spec);
  }
  Ids listed(const Filters& filters) const {
    control::ListActors asked;
    asked.filters = filters;
    const Result<ActorPage> page = actor_page(tables_, asked);
    EXPECT_TRUE(page.ok()) << page.status().message();
    Ids ids;
    if (!page.ok()) return ids;
    for (const ActorState& actor : page->actors) ids.insert(actor.actor);
    return ids;
  }
  Status refusal(const std::string& key, const std::string& value) const {
    control::ListActors asked;
    asked.filters = {{key, value}};
    return actor_page(tables_, asked).status();
  }

  const NodeId node_;
  const JobId job_;
};

TEST_F(ActorPagesTest, AllFiltersHold) {
  const ActorId living = add_living(job_).actor, waiting = add_actor(job_).actor;
  const ActorId named = add_named("sum", "Counter").actor, other = add_named("log", "Log").actor;
  EXPECT_EQ(listed({}), (Ids{living, waiting, named, other}));
  EXPECT_EQ(listed({{"class", "Counter"}, {"state", "pending"}}), (Ids{waiting, named}));
  EXPECT_EQ(listed({{"state", "alive"}}), Ids{living});
  EXPECT_EQ(listed({{"name", "sum"}}), Ids{named});
  EXPECT_EQ(listed({{"namespace", "team"}}), (Ids{named, other}));
  EXPECT_EQ(listed({{"pid", "100"}}), Ids{living});
  EXPECT_EQ(listed({{"pid", "10"}}), Ids());
}

TEST_F(ActorPagesTest, TheFirstDigitsOfAnIdAreEnough) {
  const ActorId living = add_living(job_).actor, waiting = add_actor(job_).actor;
  EXPECT_EQ(listed({{"id", waiting.short_hex()}}), Ids{waiting});
  EXPECT_EQ(listed({{"id", waiting.hex().substr(1)}}), Ids());
  EXPECT_EQ(listed({{"node", node_.short_hex()}}), Ids{living});
  EXPECT_EQ(listed({{"node", ""}}), Ids{living}) << "one that has no place is on no node";
  EXPECT_EQ(listed({{"job", job_.short_hex()}}), (Ids{living, waiting}));
  EXPECT_EQ(listed({{"job", JobId::random().hex()}}), Ids());
}

TEST_F(ActorPagesTest, AWrongFilterIsNamedWithWhatThereIs) {
  expect_failure(refusal("colour", "red"), ErrorCode::kInvalidArgument, {"'colour'", "class"});
  expect_failure(refusal("state", "happy"), ErrorCode::kInvalidArgument, {"'happy'", "pending"});
  for (const char* pid : {"", "x", "12x", "99999999999"})
    expect_failure(refusal("pid", pid), ErrorCode::kInvalidArgument, {"not a number"});
}

TEST_F(ActorPagesTest, PagesGoOnWhereTheLastEnded) {
  Ids all;
  for (int i = 0; i < 4; ++i) all.insert(add_actor(job_).actor);
  add_named("sum", "Log");  // wherever it comes, it fills no place
  control::ListActors asked;
  asked.filters = {{"class", "Counter"}};
  asked.limit = 2;
  std::vector<ActorId> seen;
  for (const bool is_last : {false, true}) {
    const Result<ActorPage> page = actor_page(tables_, asked);
    ASSERT_TRUE(page.ok());
    ASSERT_EQ(page->actors.size(), 2u);
    for (const ActorState& actor : page->actors) seen.push_back(actor.actor);
    EXPECT_EQ(page->next.is_none(), is_last) << "nothing comes after the last";
    asked.after = page->next;
  }
  EXPECT_EQ(seen, std::vector<ActorId>(all.begin(), all.end()));
}

}  // namespace
}  // namespace runtime
