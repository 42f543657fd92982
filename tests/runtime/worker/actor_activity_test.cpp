// The entries of one actor on the activity page of its process.
#include "runtime/worker/actor_activity.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>

#include "runtime/observe/activity_view.h"

namespace runtime {
namespace {

class ActorActivityTest : public ::testing::Test {
 protected:
  ActorActivityTest() {
    auto page = ActivityPage::create();
    EXPECT_TRUE(page.ok()) << page.status().to_string();
    page_ = *std::move(page);
    for (const char* name : {"add", "total"}) {
      MethodEntry entry;
      entry.name = name;
      class_.add(std::move(entry));
    }
    activity_.emplace(page_.get(), actor_);
  }
  /// As the turn does that makes the actor.
  void build() { const ActorActivity::Building building = activity_->build(class_, steady_now()); }
  const MethodEntry* method(std::size_t at) const { return &class_.methods()[at]; }
  ActorJob job(std::size_t at) const {
    ActorJob made;
    made.method = method(at);
    made.call.session = 5;
    made.call.sequence = 6;
    return made;
  }
  ActivityView view() const {
    auto view = ActivityView::open(*page_->duplicate());
    EXPECT_TRUE(view.ok()) << view.status().to_string();
    return *std::move(view);
  }
  ActivitySnapshot seen() const { return view().snapshot(true); }
  std::string running() const {
    const ActivitySnapshot snapshot = seen();
    if (snapshot.running.empty()) return "nothing";
    EXPECT_EQ(snapshot.running[0].actor, actor_);
    return snapshot.running[0].method;
  }

  const ActorId actor_ = ActorId::random();
  ActorClass class_{"Counter", typeid(int)};
  std::shared_ptr<ActivityPage> page_;
  std::optional<ActorActivity> activity_;
};

TEST_F(ActorActivityTest, TheConstructorRunsUntilItIsBuilt) {
  {
    const ActorActivity::Building building = activity_->build(class_, steady_now());
    EXPECT_EQ(running(), "Counter()");
  }
  EXPECT_EQ(running(), "nothing");
}

TEST_F(ActorActivityTest, ACallRunsFromItsBeginToItsEnd) {
  build();
  const Deadline now = steady_now();
  const std::uint64_t begun = activity_->begin_call(method(1), now);
  EXPECT_EQ(begun, ActorActivity::nanoseconds_of(now));
  EXPECT_EQ(running(), "Counter.total");
  EXPECT_GT(activity_->end_call(job(1), begun, true), 0u);
  EXPECT_EQ(running(), "nothing");
  const ActivitySnapshot snapshot = seen();
  ASSERT_FALSE(snapshot.classes.empty());
  EXPECT_EQ(snapshot.classes.back().name, "Counter");
  EXPECT_EQ(snapshot.classes.back().calls, 1u);
  EXPECT_EQ(snapshot.classes.back().failed, 1u);
}

TEST_F(ActorActivityTest, AnActorIsShownWithItsOwnNumbers) {
  build();
  activity_->count_call(1'000, true);
  EXPECT_TRUE(seen().actors.empty()) << "it is not shown yet";
  activity_->show_actor();
  activity_->show_line(3);
  activity_->count_call(1'000, false);
  activity_->count_call(500, true);
  std::vector<ActorLoad> actors = seen().actors;
  ASSERT_EQ(actors.size(), 1u);
  EXPECT_EQ(actors[0].actor, actor_);
  EXPECT_EQ(actors[0].class_name, "Counter");
  EXPECT_EQ(actors[0].calls, 2u);
  EXPECT_EQ(actors[0].failed, 1u);
  EXPECT_EQ(actors[0].busy_ns, 1'500u);
  EXPECT_EQ(actors[0].waiting, 3u);
  activity_->give_back(activity_->take_slot());
  EXPECT_TRUE(seen().actors.empty());
  EXPECT_EQ(activity_->take_slot(), nullptr) << "once";
  activity_->show_line(7);  // of one that has ended: another may have its place by now
  activity_->count_call(1'000, false);
  EXPECT_TRUE(seen().actors.empty());
}

TEST_F(ActorActivityTest, CallsAreRecordedOnlyWhileThatIsWanted) {
  build();
  std::uint64_t after = 0;
  const auto run = [&](bool failed) {
    activity_->end_call(job(1), activity_->begin_call(method(1), steady_now()), failed);
  };
  run(false);
  EXPECT_TRUE(view().trace(after).events.empty());
  view().record_until(activity_now() + 60'000'000'000);
  run(true);
  ActorJob unknown;  // of a method that its class has not
  activity_->end_call(unknown, activity_->begin_call(nullptr, steady_now()), true);
  const std::string events = view().trace(after).events;
  ASSERT_EQ(events.size(), sizeof(activity::TraceEvent));
  activity::TraceEvent event;
  std::memcpy(&event, events.data(), sizeof event);
  EXPECT_EQ(event.flow, call_flow(5, actor_, 6)) << "what the caller's side computes, too";
  EXPECT_EQ(std::memcmp(&event.actor, actor_.bytes.data(), sizeof event.actor), 0);
  EXPECT_EQ(event.tid, ActivityPage::thread_id());
  EXPECT_EQ(event.failed, 1);
}

TEST_F(ActorActivityTest, WithoutAPageNothingIsShown) {
  ActorActivity none(nullptr, actor_);
  { const ActorActivity::Building building = none.build(class_, steady_now()); }
  none.show_actor();
  none.show_line(1);
  none.count_call(1, false);
  EXPECT_EQ(none.begin_call(method(0), steady_now()), 0u);
  EXPECT_EQ(none.end_call(job(0), 0, false), 0u);
  EXPECT_EQ(none.take_slot(), nullptr);
  none.give_back(nullptr);
}

TEST_F(ActorActivityTest, ACallWhoseBeginWasNotShownHasNoEnd) {
  build();
  EXPECT_EQ(activity_->end_call(job(0), 0, false), 0u);
  for (const ClassLoad& load : seen().classes) EXPECT_EQ(load.calls, 0u);
}

}  // namespace
}  // namespace runtime
