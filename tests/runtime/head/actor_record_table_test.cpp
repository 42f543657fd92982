// The records of actors: their lives as a row of changes, and the indexes that find them.
#include "runtime/head/actor_record_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/runtime/head/table_writes.h"

namespace runtime {
namespace {

class ActorRecordTableTest : public ::testing::Test {
 protected:
  static ActorSpec spec(const std::string& name = "") {
    ActorSpec made;
    made.actor = ActorId::random();
    made.class_name = "Counter";
    made.name = name;
    made.name_space = name.empty() ? "" : "space";
    return made;
  }
  ActorId add(const ActorSpec& added) {
    table_.apply(command::AddActor{job_, added});
    return added.actor;
  }
  ActorId add() { return add(spec()); }
  void place(ActorId actor, NodeId node) {
    table_.apply(command::ActorPlaced{actor, {node, {3}}, table_.next_incarnation()});
  }
  void make_alive(ActorId actor, NodeId node) {
    place(actor, node);
    ActorAddress address;
    address.actor = actor;
    address.node = node;
    address.pid = 100;
    address.node_address = "10.0.0.1:7000";
    table_.apply(command::ActorAlive{address});
  }
  void restart(ActorId actor) {
    table_.apply(command::ActorRestarts{actor, {"it crashed", 100, -1, 9, ""}});
  }
  std::optional<JobId> die(ActorId actor) {
    return table_.end(command::ActorDead{actor, {"it crashed", 100, -1, 9, ""}}, ++order_);
  }
  TableWrites changes() { return writes_of(table_); }
  /// As ClusterTables does: in the order of the keys.
  static Status restore(ActorRecordTable& table, const TableWrites& written) {
    for (const auto& [key, value] : written) {
      if (!value) continue;
      auto entry = journal::decode(*value);
      if (!entry.ok()) return entry.status();
      Status status;
      if (const auto* of = std::get_if<journal::ActorSpecOf>(&*entry)) status = table.restore(*of);
      if (const auto* row = std::get_if<journal::ActorRow>(&*entry)) status = table.restore(*row);
      if (const auto* saved = std::get_if<journal::ActorSaved>(&*entry))
        status = table.restore(*saved);
      if (!status.ok()) return status;
    }
    return {};
  }
  JobTable running_jobs() const {
    JobTable jobs;
    JobInfo info;
    info.job = job_;
    jobs.apply(command::StartJob{info, {}});
    return jobs;
  }
  /// A living actor as a journal has it.
  journal::ActorSpecOf spec_entry(const std::string& name = "") const { return {job_, spec(name)}; }
  static journal::ActorRow row_entry(ActorId actor) {
    journal::ActorRow row;
    row.actor = actor;
    return row;
  }

  using Actors = std::set<ActorId>;
  const JobId job_ = JobId::random();
  const NodeId node_ = NodeId::random(), other_ = NodeId::random();
  std::uint64_t order_ = 0;
  ActorRecordTable table_;
};

TEST_F(ActorRecordTableTest, ANameIsTakenUntilTheDeath) {
  const ActorId actor = add(spec("counter"));
  ActorSpec elsewhere = spec("counter");
  elsewhere.name_space = "another";
  add(elsewhere);
  add();
  EXPECT_EQ(table_.named("space", "counter"), table_.find(actor));
  EXPECT_EQ(table_.named("another", "counter"), table_.find(elsewhere.actor));
  EXPECT_EQ(table_.named("", ""), nullptr);
  make_alive(actor, node_);
  restart(actor);
  EXPECT_TRUE(table_.named("space", "counter")) << "it comes back";
  die(actor);
  EXPECT_EQ(table_.named("space", "counter"), nullptr);
  EXPECT_TRUE(table_.find(actor)) << "known for questions about it";
  const ActorId next = add(spec("counter"));
  EXPECT_EQ(table_.named("space", "counter"), table_.find(next));
  EXPECT_TRUE(table_.named("another", "counter"));
}

TEST_F(ActorRecordTableTest, NodesKnowWhatRunsOrStartsThere) {
  const ActorId first = add(), second = add();
  EXPECT_TRUE(table_.started_on(node_).empty());
  EXPECT_TRUE(table_.started_on(NodeId()).empty()) << "what has no place is nowhere";
  place(first, node_);
  make_alive(second, node_);
  EXPECT_EQ(table_.started_on(node_), (Actors{first, second}));
  place(first, other_);  // a start that failed is tried elsewhere
  EXPECT_EQ(table_.started_on(node_), Actors{second});
  EXPECT_EQ(table_.started_on(other_), Actors{first});
  restart(second);
  EXPECT_TRUE(table_.started_on(node_).empty());
  die(first);
  EXPECT_TRUE(table_.started_on(other_).empty());
}

TEST_F(ActorRecordTableTest, IncarnationsGrowOverAllActors) {
  const ActorId first = add(), second = add();
  EXPECT_EQ(table_.next_incarnation(), 1u);
  place(first, node_);
  place(second, node_);
  EXPECT_EQ(table_.find(second)->incarnation, 2u);
  place(first, node_);
  EXPECT_EQ(table_.find(first)->incarnation, 3u);
  EXPECT_EQ(table_.next_incarnation(), 4u);
}

TEST_F(ActorRecordTableTest, TheVersionGrowsWithEveryPhase) {
  const ActorId actor = add();
  const auto version = [&] { return table_.find(actor)->version; };
  EXPECT_EQ(version(), 1u);
  table_.apply(command::ActorWaits{actor, "no room"});
  EXPECT_EQ(table_.find(actor)->pending_reason, "no room");
  EXPECT_EQ(version(), 1u) << "it waits as before";
  place(actor, node_);
  EXPECT_EQ(table_.find(actor)->pending_reason, "");
  EXPECT_EQ(version(), 2u);
  make_alive(actor, node_);
  EXPECT_EQ(version(), 4u);
  restart(actor);
  EXPECT_EQ(version(), 5u);
  EXPECT_EQ(table_.find(actor)->pending_reason, "its process ended: it crashed");
  die(actor);
  EXPECT_EQ(version(), 6u);
}

TEST_F(ActorRecordTableTest, ARestartForADrainIsAMove) {
  const ActorId actor = add();
  make_alive(actor, node_);
  EXPECT_EQ(table_.find(actor)->gpus, std::vector<std::uint32_t>{3});
  restart(actor);
  EXPECT_EQ(table_.find(actor)->restarts, 1u);
  EXPECT_EQ(table_.find(actor)->moves, 0u);
  EXPECT_TRUE(table_.find(actor)->gpus.empty());
  make_alive(actor, node_);
  table_.apply(command::ActorMoves{actor});
  restart(actor);
  EXPECT_EQ(table_.find(actor)->restarts, 2u);
  EXPECT_EQ(table_.find(actor)->moves, 1u);
  make_alive(actor, other_);
  restart(actor);
  EXPECT_EQ(table_.find(actor)->moves, 1u) << "it had arrived";
}

TEST_F(ActorRecordTableTest, AMoveThatFoundItsPlaceBeforeTheEndCountsNoMore) {
  const ActorId actor = add();
  make_alive(actor, node_);
  table_.apply(command::ActorMoves{actor});
  place(actor, other_);
  EXPECT_FALSE(table_.find(actor)->moving);
}

TEST_F(ActorRecordTableTest, AParkedActorHasNoResources) {
  ActorSpec made = spec();
  made.resources = {{"CPU", 1}};
  const ActorId actor = add(made);
  make_alive(actor, node_);
  table_.apply(command::ActorParked{actor});
  EXPECT_TRUE(table_.find(actor)->state().resources.empty());
  EXPECT_TRUE(table_.find(actor)->gpus.empty());
  EXPECT_EQ(table_.find(actor)->phase, ActorPhase::kAlive);
}

TEST_F(ActorRecordTableTest, TheDeadKeepNothingThatOnlyAStartNeeds) {
  ActorSpec made = spec("counter");
  made.constructor_args = "arguments";
  made.env = {{"NAME", "value"}};
  made.labels = {{"zone", "a"}};
  const ActorId actor = add(made);
  make_alive(actor, node_);
  table_.apply(command::ActorStateSaved{actor, "state"});
  EXPECT_EQ(*table_.find(actor)->spec.saved_state, "state");
  table_.follow();
  die(actor);
  const ActorRecord& dead = *table_.find(actor);
  EXPECT_EQ(dead.spec.constructor_args, "");
  EXPECT_TRUE(dead.spec.env.empty());
  EXPECT_TRUE(dead.spec.labels.empty());
  EXPECT_FALSE(dead.spec.saved_state);
  EXPECT_EQ(dead.address.node_address, "");
  EXPECT_EQ(dead.state().name, "counter") << "for people";
  EXPECT_EQ(dead.state().death.text, "it crashed");
  EXPECT_EQ(dead.state().pid, 100);
  EXPECT_FALSE(changes().at(journal::key_of_saved(actor)))
      << "its state goes from the journal, too";
}

TEST_F(ActorRecordTableTest, TheDeadAreForgottenInTheOrderOfTheirDeaths) {
  const ActorId first = add(), second = add(), third = add(), lives = add();
  for (const ActorId& actor : {third, first, second}) die(actor);
  EXPECT_EQ(table_.dead(), 3u);
  table_.follow();
  table_.apply(command::ForgetDead{2});
  EXPECT_EQ(table_.dead(), 1u);
  EXPECT_EQ(table_.find(third), nullptr);
  EXPECT_EQ(table_.find(first), nullptr);
  EXPECT_TRUE(table_.find(second));
  EXPECT_TRUE(table_.find(lives));
  const auto changed = changes();
  EXPECT_EQ(changed.size(), 4u);
  EXPECT_FALSE(changed.at(journal::key_of_spec(third)));
  EXPECT_FALSE(changed.at(journal::key_of_row(first)));
}

TEST_F(ActorRecordTableTest, TheLastThatOutlivesItsJobIsReported) {
  ActorSpec outliving = spec(), last = spec();
  outliving.outlives_job = last.outlives_job = true;
  EXPECT_FALSE(table_.outlive(job_));
  add(outliving);
  add(last);
  const ActorId plain = add();
  EXPECT_TRUE(table_.outlive(job_));
  EXPECT_EQ(die(outliving.actor), std::nullopt);
  EXPECT_EQ(die(plain), std::nullopt);
  EXPECT_TRUE(table_.outlive(job_));
  EXPECT_EQ(die(last.actor), job_);
  EXPECT_FALSE(table_.outlive(job_));
}

TEST_F(ActorRecordTableTest, OwnersAndGroupsKnowTheirLivingActors) {
  const ActorId owner = add();
  ActorSpec owned = spec(), member = spec();
  owned.owner = owner;
  const GroupId group = GroupId::random();
  member.bundle = BundleSlot{group, 1};
  add(owned);
  add(member);
  EXPECT_EQ(table_.owned_by(owner), std::vector{owned.actor});
  EXPECT_TRUE(table_.owned_by(ActorId()).empty()) << "what has no owner is not one's";
  EXPECT_EQ(table_.members(group), Actors{member.actor});
  die(owned.actor);
  die(member.actor);
  EXPECT_TRUE(table_.owned_by(owner).empty());
  EXPECT_TRUE(table_.members(group).empty());
}

TEST_F(ActorRecordTableTest, ARestoredTableIsTheSame) {
  table_.follow();
  ActorSpec named = spec("counter"), outliving = spec(), member = spec();
  outliving.outlives_job = true;
  outliving.owner = add(named);
  member.bundle = BundleSlot{GroupId::random(), 0};
  add(outliving);
  add(member);
  make_alive(named.actor, node_);
  table_.apply(command::ActorMoves{named.actor});
  table_.apply(command::ActorEnds{named.actor});
  table_.apply(command::ActorStateSaved{named.actor, "state"});
  std::vector<ActorId> gone{add(), add(), add(), add()};
  std::sort(gone.rbegin(), gone.rend());
  for (const ActorId& actor : gone) die(actor);  // not in the order of the keys

  ActorRecordTable restored;
  restored.restore_incarnation(table_.next_incarnation() - 1);
  const Status status = restore(restored, changes());
  ASSERT_TRUE(status.ok()) << status.to_string();
  ASSERT_TRUE(restored.end_restore(running_jobs()).ok());
  EXPECT_TRUE(restored.all() == table_.all());
  EXPECT_EQ(restored.next_incarnation(), table_.next_incarnation());
  EXPECT_EQ(restored.named("space", "counter")->spec.actor, named.actor);
  EXPECT_EQ(restored.started_on(node_), Actors{named.actor});
  EXPECT_EQ(restored.owned_by(named.actor), std::vector{outliving.actor});
  EXPECT_EQ(restored.members(member.bundle->group), Actors{member.actor});
  EXPECT_TRUE(restored.outlive(job_));
  EXPECT_EQ(restored.dead(), 4u);
  restored.apply(command::ForgetDead{1});
  EXPECT_EQ(restored.find(gone[0]), nullptr) << "the one that died first";
}

TEST_F(ActorRecordTableTest, RecordsWithoutTheSpecificationAreRefused) {
  EXPECT_EQ(table_.restore(row_entry(ActorId::random())).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(table_.restore(journal::ActorSaved{ActorId::random(), "state"}).code(),
            ErrorCode::kInvalidArgument);
}

TEST_F(ActorRecordTableTest, OneThatIsNeitherDeadNorAliveIsRefused) {
  const journal::ActorSpecOf entry = spec_entry();
  EXPECT_TRUE(table_.restore(entry).ok());
  journal::ActorRow row = row_entry(entry.spec.actor);
  row.died_as = 1;
  EXPECT_EQ(table_.restore(row).code(), ErrorCode::kInvalidArgument);
  row.died_as = 0;
  row.phase = ActorPhase::kDead;
  EXPECT_EQ(table_.restore(row).code(), ErrorCode::kInvalidArgument);
}

TEST_F(ActorRecordTableTest, RecordsThatContradictEachOtherAreRefused) {
  const auto restored = [&](auto change, bool both_named) {
    ActorRecordTable table;
    const journal::ActorSpecOf one = spec_entry("counter");
    const journal::ActorSpecOf two = spec_entry(both_named ? "counter" : "");
    for (const journal::ActorSpecOf& entry : {one, two}) {
      EXPECT_TRUE(table.restore(entry).ok());
      journal::ActorRow row = row_entry(entry.spec.actor);
      change(row);
      EXPECT_TRUE(table.restore(row).ok());
    }
    table.restore_incarnation(5);
    return table.end_restore(running_jobs()).code();
  };
  const auto as_it_is = [](journal::ActorRow&) {};
  const auto die_together = [](journal::ActorRow& row) {
    row.phase = ActorPhase::kDead;
    row.died_as = 7;
  };
  EXPECT_EQ(restored(as_it_is, false), ErrorCode::kOk);
  EXPECT_EQ(restored(as_it_is, true), ErrorCode::kInvalidArgument) << "two of one name";
  EXPECT_EQ(restored(die_together, false), ErrorCode::kInvalidArgument);
  EXPECT_EQ(restored([](journal::ActorRow& row) { row.incarnation = 5; }, false), ErrorCode::kOk);
  EXPECT_EQ(restored([](journal::ActorRow& row) { row.incarnation = 6; }, false),
            ErrorCode::kInvalidArgument);
}

TEST_F(ActorRecordTableTest, OnlyTheDeadMayBeOfAForgottenJob) {
  const journal::ActorSpecOf entry = spec_entry("counter");
  journal::ActorRow row = row_entry(entry.spec.actor);
  for (const bool dead : {false, true}) {
    row.phase = dead ? ActorPhase::kDead : ActorPhase::kPending;
    row.died_as = dead ? 1 : 0;
    ActorRecordTable table;
    EXPECT_TRUE(table.restore(entry).ok());
    EXPECT_TRUE(table.restore(row).ok());
    EXPECT_EQ(table.end_restore(JobTable()).ok(), dead);
  }
}

}  // namespace
}  // namespace runtime
