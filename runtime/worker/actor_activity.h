// ActorActivity: the state of an actor and of its running calls, shown to its node
// (observe/activity_page.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "runtime/call/registry.h"
#include "runtime/core/clock.h"
#include "runtime/core/ids.h"
#include "runtime/observe/activity_page.h"
#include "runtime/worker/actor_job.h"

namespace runtime {

/// Does nothing without a page. The turn that builds the actor begins it, before there is another.
/// Any turn may show calls. The owner guards the numbers of the actor itself.
class ActorActivity {
 public:
  /// `page` may be null; it and `actor` outlive this.
  ActorActivity(ActivityPage* page, const ActorId& actor) : page_(page), actor_(actor) {}
  ActorActivity(const ActorActivity&) = delete;
  ActorActivity& operator=(const ActorActivity&) = delete;

  /// The calling thread runs the constructor, until the returned value ends.
  class Building;
  Building build(const ActorClass& of_class, Deadline now);

  static std::uint64_t nanoseconds_of(Deadline time) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
  }
  /// The calling thread runs the call. Returns when that began; 0: it is not shown.
  std::uint64_t begin_call(const MethodEntry* method, Deadline now) const;
  /// Ends the record of a call. Returns how long the call took.
  std::uint64_t end_call(const ActorJob& job, std::uint64_t begun_ns, bool failed) const;

  // Guarded by the owner.
  void show_actor() {
    if (page_) slot_ = page_->take_actor(actor_, class_);
  }
  void show_line(std::size_t calls) {
    if (slot_) slot_->waiting.set(calls);
  }
  void count_call(std::uint64_t took_ns, bool failed) {
    if (!slot_) return;
    slot_->calls.add(1);
    if (failed) slot_->failed.add(1);
    slot_->busy_ns.add(took_ns);
  }
  /// The actor has ended; give_back() what is returned, without a lock. Null: there is nothing.
  activity::ActorSlot* take_slot() { return std::exchange(slot_, nullptr); }
  void give_back(activity::ActorSlot* slot) const {
    if (slot) page_->give_back(slot);
  }

 private:
  std::uint32_t number_of(const MethodEntry* method) const {
    return method ? class_.method(static_cast<std::size_t>(method - methods_)) : 0;
  }

  ActivityPage* const page_;
  const ActorId& actor_;
  ActivityPage::ClassRef class_;
  const MethodEntry* methods_ = nullptr;  // the class's first
  activity::ActorSlot* slot_ = nullptr;   // null: the actor is not shown
};

class ActorActivity::Building {
 public:
  explicit Building(ActivityPage* page) : page_(page) {}
  Building(const Building&) = delete;
  Building& operator=(const Building&) = delete;
  ~Building() {
    if (page_) page_->end_running();
  }

 private:
  ActivityPage* const page_;
};

inline ActorActivity::Building ActorActivity::build(const ActorClass& of_class, Deadline now) {
  if (page_) {
    class_ = page_->class_of(of_class);
    methods_ = of_class.methods().data();
    page_->begin_call(actor_, class_.constructor, nanoseconds_of(now));
  }
  return Building(page_);
}

inline std::uint64_t ActorActivity::begin_call(const MethodEntry* method, Deadline now) const {
  if (!page_) return 0;
  const std::uint64_t begun_ns = nanoseconds_of(now);
  page_->begin_call(actor_, number_of(method), begun_ns);
  return begun_ns;
}

inline std::uint64_t ActorActivity::end_call(const ActorJob& job, std::uint64_t begun_ns,
                                             bool failed) const {
  if (!page_ || begun_ns == 0) return 0;
  const std::uint64_t now_ns = activity_now();
  page_->end_call(class_, begun_ns, now_ns, failed);
  if (page_->records(now_ns) && job.method) {
    activity::TraceEvent event;
    event.begin_ns = begun_ns;
    event.duration_ns = now_ns - begun_ns;
    event.flow = call_flow(job.call.session, actor_, job.call.sequence);
    std::memcpy(&event.actor, actor_.bytes.data(), sizeof event.actor);
    event.tid = ActivityPage::thread_id();
    event.method = number_of(job.method);
    event.failed = failed;
    page_->record(event);
  }
  return now_ns - begun_ns;
}

}  // namespace runtime
