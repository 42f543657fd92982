// The activity page of a process, and what its node reads of it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <thread>

#include "runtime/observe/activity_page.h"
#include "runtime/observe/activity_view.h"

namespace runtime {
namespace {

std::shared_ptr<ActivityPage> make_page() {
  auto page = ActivityPage::create();
  EXPECT_TRUE(page.ok()) << page.status().to_string();
  return *page;
}

ActivityView view_of(const ActivityPage& page) {
  auto view = ActivityView::open(*page.duplicate());
  EXPECT_TRUE(view.ok()) << view.status().to_string();
  return *std::move(view);
}

const ClassLoad* find(const ActivitySnapshot& snapshot, const std::string& name) {
  for (const ClassLoad& load : snapshot.classes) {
    if (load.name == name) return &load;
  }
  return nullptr;
}

TEST(Activity, CountsCallsByClassAndThread) {
  auto page = make_page();
  const std::vector<std::string> methods{"add", "total"};
  const auto counter = page->class_of("Counter", methods);
  const ActorId actor = ActorId::random();
  const auto work = [&] {
    for (int i = 0; i < 100; ++i) {
      page->begin_call(actor, counter.method(0), 1'000);
      page->end_call(counter, 1'000, 1'000 + 20'000, i % 10 == 0);
    }
  };
  std::thread other(work);
  other.join();
  work();
  const ActivitySnapshot snapshot = view_of(*page).snapshot(false);
  const ClassLoad* load = find(snapshot, "Counter");
  ASSERT_NE(load, nullptr);
  EXPECT_EQ(load->calls, 200u);
  EXPECT_EQ(load->failed, 20u);
  EXPECT_EQ(load->sum_ns, 200u * 20'000);
  EXPECT_EQ(load->buckets[activity::bucket_of(20'000)], 200u);
  EXPECT_TRUE(snapshot.running.empty());
}

TEST(Activity, ShowsWhatAThreadRuns) {
  auto page = make_page();
  const std::vector<std::string> methods{"add"};
  const auto counter = page->class_of("Counter", methods);
  const ActorId actor = ActorId::random();
  page->begin_call(actor, counter.method(0), 42);
  const ActivityView view = view_of(*page);
  auto running = view.snapshot(false).running;
  ASSERT_EQ(running.size(), 1u);
  EXPECT_EQ(running[0].method, "Counter.add");
  EXPECT_EQ(running[0].actor, actor);
  EXPECT_EQ(running[0].begun_ns, 42u);
  EXPECT_EQ(static_cast<std::uint32_t>(running[0].tid), ActivityPage::thread_id());
  page->begin_call(actor, counter.constructor, 43);
  running = view.snapshot(false).running;
  ASSERT_EQ(running.size(), 1u);
  EXPECT_EQ(running[0].method, "Counter()");
  page->end_running();
  EXPECT_TRUE(view.snapshot(false).running.empty());
}

TEST(Activity, ActorsComeAndGo) {
  auto page = make_page();
  const auto counter = page->class_of("Counter", std::vector<std::string>());
  const ActivityView view = view_of(*page);
  const ActorId first = ActorId::random(), second = ActorId::random();
  activity::ActorSlot* slot = page->take_actor(first, counter);
  ASSERT_NE(slot, nullptr);
  slot->calls.add(3);
  slot->waiting.set(7);
  page->take_actor(second, counter);
  auto snapshot = view.snapshot(true);
  ASSERT_EQ(snapshot.actors.size(), 2u);
  EXPECT_EQ(snapshot.actors[0].actor, first);
  EXPECT_EQ(snapshot.actors[0].calls, 3u);
  EXPECT_EQ(find(snapshot, "Counter")->waiting, 7u);
  EXPECT_EQ(find(snapshot, "Counter")->actors, 2u);
  page->give_back(slot);
  const ActorId third = ActorId::random();
  EXPECT_EQ(page->take_actor(third, counter), slot);
  snapshot = view.snapshot(true);
  ASSERT_EQ(snapshot.actors.size(), 2u);
  EXPECT_EQ(snapshot.actors[0].actor, third);
  EXPECT_EQ(snapshot.actors[0].calls, 0u) << "what the actor before had done";
}

TEST(Activity, MoreClassesThanThereIsRoomForAreCountedTogether) {
  auto page = make_page();
  for (std::size_t i = 0; i < 2 * activity::kClassesMax; ++i) {
    const auto ref = page->class_of("Class" + std::to_string(i), std::vector<std::string>());
    page->begin_call({}, ref.constructor, 1);
    page->end_call(ref, 1, 2, false);
  }
  const ActivitySnapshot snapshot = view_of(*page).snapshot(false);
  EXPECT_EQ(snapshot.classes.size(), activity::kClassesMax);
  const ClassLoad* other = find(snapshot, "other");
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->calls, activity::kClassesMax + 1);
  EXPECT_EQ(page->class_of("Class3", std::vector<std::string>()).index,
            page->class_of("Class3", std::vector<std::string>()).index);
}

TEST(Activity, RecordsOnlyWhileItIsAskedTo) {
  auto page = make_page();
  ActivityView view = view_of(*page);
  EXPECT_FALSE(page->records(activity_now()));
  view.record_until(activity_now() + 60'000'000'000);
  EXPECT_TRUE(page->records(activity_now()));
  activity::TraceEvent event;
  event.flow = call_flow(1, ActorId::random(), 2);
  for (std::uint64_t i = 0; i < 3; ++i) {
    event.begin_ns = i;
    page->record(event);
  }
  std::uint64_t after = 0;
  TraceOfProcess trace = view.trace(after);
  EXPECT_EQ(trace.events.size(), 3 * sizeof(activity::TraceEvent));
  EXPECT_EQ(trace.lost, 0u);
  EXPECT_TRUE(view.trace(after).events.empty()) << "twice the same";
  for (std::uint64_t i = 0; i < activity::kEventsMax + 10; ++i) page->record(event);
  trace = view.trace(after);
  EXPECT_EQ(trace.events.size(), activity::kEventsMax * sizeof(activity::TraceEvent));
  EXPECT_EQ(trace.lost, 10u);
  view.record_until(0);
  EXPECT_FALSE(page->records(activity_now()));
}

TEST(Activity, RefusesDescriptorsThatCouldBeCutShort) {
  FileDescriptor unsealed(::memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), sizeof(activity::Layout)), 0);
  EXPECT_EQ(ActivityView::open(std::move(unsealed)).status().code(), ErrorCode::kInvalidArgument);
  FileDescriptor small(::memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(small.get(), 4096), 0);
  ::fcntl(small.get(), F_ADD_SEALS, F_SEAL_SHRINK);
  EXPECT_EQ(ActivityView::open(std::move(small)).status().code(), ErrorCode::kInvalidArgument);
  FileDescriptor pipe_end(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(ActivityView::open(std::move(pipe_end)).ok());
}

TEST(Activity, APageOfGarbageIsReadWithoutHarm) {
  auto layout = std::make_unique<activity::Layout>();
  std::memset(static_cast<void*>(layout.get()), 0xff, sizeof *layout);
  const ActivitySnapshot snapshot = read_snapshot(*layout, true);
  EXPECT_LE(snapshot.classes.size(), activity::kClassesMax);
  EXPECT_LE(snapshot.actors.size(), activity::kActorsMax);
  for (const ClassLoad& load : snapshot.classes)
    EXPECT_LE(load.name.size(), activity::kNameBytesMax);
  std::uint64_t after = 0;
  EXPECT_TRUE(read_trace(*layout, after).events.empty()) << "no number fits its place";
}

}  // namespace
}  // namespace runtime
